"""Schedules over HTTP: kept, shown, paused, started by hand and by the calendar, made up for."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from api.conftest import API, ONE, CurlWorker, assert_problem
from oraculo.api.schedules import UPCOMING_MAX
from oraculo.service import Oraculo
from waiting import until

URL = f"{API}/schedules"
DAILY = {"cron": "0 6 * * *", "fuso": "America/Sao_Paulo", "requisicao": ONE}


async def put(client: httpx2.AsyncClient, name: str, status: int = 201, **document: Any) -> dict[str, Any]:
    answer = await client.put(
        f"{URL}/{name}", json={**DAILY, **document} if "intervalo_s" not in document else document
    )
    assert answer.status_code == status, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def runs_of(client: httpx2.AsyncClient, name: str) -> list[str]:
    found = (await client.get(f"{API}/orchestrations", params={"rotulo": f"agenda:{name}", "limit": 500})).json()
    return [one["correlation_id"] for one in found["orchestrations"]]


async def test_kept_shown_listed_removed(client: httpx2.AsyncClient) -> None:
    made = await put(client, "diario")
    assert made["nome"] == "diario" and made["sobreposicao"] == "pular" and made["recuperar_s"] == 3600
    assert made["pausada"] is None and made["ultima"] is None and len(made["proximos"]) == 10
    assert all(one.endswith("T09:00:00Z") for one in made["proximos"])
    assert await put(client, "diario", 200, sobreposicao="permitir")
    shown = (await client.get(f"{URL}/diario")).json()
    assert shown["sobreposicao"] == "permitir" and shown["requisicao"]["coletas"][0]["fonte"] == "youtube"
    for name in ("a", "b"):
        await put(client, name)
    first = (await client.get(URL, params={"limit": 2})).json()
    assert [one["nome"] for one in first["agendas"]] == ["a", "b"] and first["next"] == "b"
    rest = (await client.get(URL, params={"cursor": first["next"]})).json()
    assert [one["nome"] for one in rest["agendas"]] == ["diario"] and rest["next"] is None
    assert (await client.delete(f"{URL}/a")).status_code == 204
    assert_problem(await client.delete(f"{URL}/a"), 404, "unknown_id")
    assert_problem(await client.get(f"{URL}/a"), 404, "unknown_id")
    events = (await client.get(f"{API}/system-events")).json()["eventos"]
    assert [(one["acao"], one["agenda"], one["ator"]) for one in events][:2] == [
        ("removed", "a", "local"),
        ("put", "b", "local"),
    ]


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "* * * *"}, "cron"),
        ({"fuso": "Marte/Olimpo"}, "fuso"),
        ({"requisicao": {"coletas": []}}, "coletas"),
        ({"requisicao": {"tipo": "nenhum"}}, "tipo"),
        ({"requisicao": {**ONE, "correlation_id": "x"}}, "requisicao.correlation_id"),
        ({"requisicao": {**ONE, "rotulos": [f"r{n}" for n in range(16)]}}, "requisicao.rotulos"),
        ({"sobreposicao": "talvez"}, "sobreposicao"),
        ({"recuperar_s": -1}, "recuperar_s"),
        ({"nada": 1}, "nada"),
    ],
)
async def test_faults_say_where(client: httpx2.AsyncClient, document: dict[str, Any], where: str) -> None:
    answer = await client.put(f"{URL}/x", json={**DAILY, **document})
    assert answer.status_code == 422, answer.text
    assert [one["campo"] for one in answer.json()["errors"]] == [where]
    assert (await client.get(f"{URL}/x")).status_code == 404


async def test_faults_of_the_whole(client: httpx2.AsyncClient) -> None:
    for document in ({**DAILY, "intervalo_s": 5}, {"requisicao": ONE}, {**DAILY, "fim": "2026-01-01T00:00:00"}):
        answer = await client.put(f"{URL}/x", json=document)
        assert answer.status_code == 422 and answer.json()["detail"], answer.text
    assert_problem(await client.put(f"{URL}/{'x' * 81}", json=DAILY), 422, "invalid_parameter")


async def test_upcoming(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await put(client, "a", intervalo_s=3600, requisicao=ONE)
    found = (await client.get(f"{URL}/a/upcoming", params={"n": 3})).json()["instantes"]
    instants = [datetime.fromisoformat(one) for one in found]
    assert len(instants) == 3 and instants[0] > oraculo.now()
    assert {other - one for one, other in pairwise(instants)} == {timedelta(hours=1)}
    assert len((await client.get(f"{URL}/a/upcoming", params={"n": UPCOMING_MAX})).json()["instantes"]) == UPCOMING_MAX
    assert (await client.get(f"{URL}/a/upcoming", params={"n": UPCOMING_MAX + 1})).status_code == 422
    end = instants[1].isoformat()
    ends = await put(client, "a", 200, intervalo_s=3600, requisicao=ONE, fim=end)
    assert len(ends["proximos"]) == 2


async def test_instants_start_runs_named_after_them(client: httpx2.AsyncClient, worker: CurlWorker) -> None:
    await put(client, "s", intervalo_s=1, requisicao={"collects": [{"source": "youtube"}]}, sobreposicao="permitir")
    await until(lambda: _at_least(client, "s", 2))
    assert (await client.post(f"{URL}/s/pause", json={"motivo": "chega"})).json()["pausada"]["motivo"] == "chega"
    names = await runs_of(client, "s")
    instants = sorted(datetime.fromisoformat(name.removeprefix("s@")) for name in names)
    assert all(one.microsecond == 0 for one in instants)
    assert [other - one for one, other in pairwise(instants)] == [timedelta(seconds=1)] * (len(instants) - 1)
    shown = (await client.get(f"{URL}/s")).json()
    assert shown["ultima"] == f"s@{instants[-1].strftime('%Y-%m-%dT%H:%M:%SZ')}"
    assert shown["instantes"] == {"fired": len(names)}
    await worker.do("escavador_youtube")
    metrics = (await client.get("/metrics")).text
    assert f'orchestration_schedule_instants_total{{outcome="fired"}} {len(names)}.0' in metrics
    resumed = (await client.post(f"{URL}/s/resume")).json()
    assert resumed["pausada"] is None
    await until(lambda: _at_least(client, "s", len(names) + 1))


async def _at_least(client: httpx2.AsyncClient, name: str, count: int) -> bool:
    return len(await runs_of(client, name)) >= count


async def test_a_run_that_is_open_makes_the_next_instant_skip(client: httpx2.AsyncClient) -> None:
    await put(client, "p", intervalo_s=1, requisicao=ONE)
    await until(lambda: _counted(client, "p", "skipped"))
    assert len(await runs_of(client, "p")) == 1


async def test_a_run_that_is_open_is_cancelled_by_the_next_instant(client: httpx2.AsyncClient) -> None:
    await put(client, "c", intervalo_s=1, requisicao=ONE, sobreposicao="cancelar_anterior")
    await until(lambda: _at_least(client, "c", 3))
    earlier = (await runs_of(client, "c"))[1:]
    found = [(await client.get(f"{API}/orchestrations/{one}")).json() for one in earlier[1:]]
    assert found and all(one["status"] == "cancelada" for one in found)
    assert "schedule c" in found[0]["motivo_cancelamento"]


async def _counted(client: httpx2.AsyncClient, name: str, outcome: str) -> bool:
    return bool((await client.get(f"{URL}/{name}")).json()["instantes"].get(outcome))


async def test_what_cannot_be_started_is_shown_and_the_schedule_goes_on(client: httpx2.AsyncClient) -> None:
    await client.put(f"{API}/task-types/t", json=ONE)
    await put(client, "f", intervalo_s=1, requisicao={"tipo": "t"}, sobreposicao="permitir")
    await client.delete(f"{API}/task-types/t")
    await until(lambda: _counted(client, "f", "failed"))
    assert "unknown task type 't'" in (await client.get(f"{URL}/f")).json()["erro"]
    await client.put(f"{API}/task-types/t", json=ONE)
    await until(lambda: _at_least(client, "f", 1))
    await client.post(f"{URL}/f/pause")
    await until(lambda: _no_error(client, "f"))


async def _no_error(client: httpx2.AsyncClient, name: str) -> bool:
    return (await client.get(f"{URL}/{name}")).json()["erro"] is None


async def test_trigger_starts_one_now_also_while_it_is_paused(client: httpx2.AsyncClient) -> None:
    await put(client, "t")
    paused = (await client.post(f"{URL}/t/pause", json={"motivo": "manutenção"})).json()["pausada"]
    assert (paused["por"], paused["motivo"]) == ("local", "manutenção") and paused["em"]
    answer = await client.post(f"{URL}/t/trigger")
    assert answer.status_code == 202
    name = answer.json()["correlation_id"]
    assert name.startswith("t@") and await runs_of(client, "t") == [name]
    assert answer.headers["location"].startswith(f"{API}/orchestrations/t%40")
    assert (await client.get(f"{URL}/t")).json()["ultima"] == name
    events = (await client.get(f"{API}/system-events")).json()["eventos"]
    assert [one["acao"] for one in events[:2]] == ["triggered", "paused"]
    assert events[1]["motivo"] == "manutenção"


async def test_backfill_starts_what_is_missing(client: httpx2.AsyncClient) -> None:
    await put(client, "h", intervalo_s=3600, requisicao=ONE)
    span = {"de": "2026-01-01T00:00:00Z", "ate": "2026-01-01T05:00:00Z"}
    first = await client.post(f"{URL}/h/backfill", json={**span, "ate": "2026-01-01T02:30:00Z"})
    assert first.status_code == 202 and first.json()["iniciadas"] == 3
    again = (await client.post(f"{URL}/h/backfill", json=span)).json()
    assert again["iniciadas"] == 3 and [one["status"] for one in again["itens"]] == [200] * 3 + [202] * 3
    assert sorted(await runs_of(client, "h")) == [f"h@2026-01-01T0{n}:00:00Z" for n in range(6)]
    for bad, where in (
        ({"de": "2026-01-02T00:00:00Z", "ate": "2026-01-01T00:00:00Z"}, "de"),
        ({**span, "ate": "2126-01-01T00:00:00Z"}, "ate"),
        ({**span, "de": "2020-01-01T00:00:00Z"}, "ate"),
        ({**span, "de": "2026-01-01T00:00:00"}, "de"),
    ):
        answer = await client.post(f"{URL}/h/backfill", json=bad)
        assert answer.status_code == 422 and answer.json()["errors"][0]["campo"] == where, answer.text


async def test_a_change_of_the_calendar_fires_nothing_of_the_past(client: httpx2.AsyncClient) -> None:
    await put(client, "m", cron="0 0 1 1 *", recuperar_s=366 * 86400)
    await put(client, "m", 200, cron="* * * * *", recuperar_s=366 * 86400)
    shown = (await client.get(f"{URL}/m")).json()
    assert shown["ultima"] is None
    assert await runs_of(client, "m") in ([], [(await client.get(f"{URL}/m")).json()["ultima"]])
