"""Section 8 of the contract, and the waits of section 7, word by word against `oraculo up`: every route, field, status
and form of answer, in both vocabularies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acceptance.conftest import Process, Server
from waiting import eventually

API = "/api/v1"
RUNS = f"{API}/orchestrations"
SCHEDULES = f"{API}/schedules"
FINAL = [{"codigo": "x", "mensagem": "não deu", "definitivo": True}]


class Caller:
    """Somebody with an HTTP client and the contract."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._http = httpx2.Client(base_url=server.url, trust_env=False, timeout=60)

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, status: int, **options: Any) -> Any:
        answer = self._http.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
        return answer.json() if answer.content else None

    def begin(self, name: str, **request: Any) -> str:
        body = {"coletas": [{"fonte": name}], **request} if "tarefas" not in request else request
        answer = self._http.post(RUNS, json={"correlation_id": name, **body})
        assert answer.status_code == 202 and answer.headers["location"] == f"{RUNS}/{name}", answer.text
        return name

    def lease(self, queue: str, wait: float = 20) -> dict[str, Any]:
        [one] = self.ask("POST", f"{API}/queues/{queue}/lease", 200, json={"max": 1, "wait": wait})["mensagens"]
        order: dict[str, Any] = one["mensagem"]
        return order

    def nothing_in(self, queue: str) -> bool:
        found = self.ask("POST", f"{API}/queues/{queue}/lease", 200, json={"max": 1, "wait": 0})
        return found == {"mensagens": []}

    def reply(self, order: dict[str, Any], ok: bool = True, dados: Any = None) -> None:
        collects = order["tipo_evento"] == "iniciar_coleta"
        said: dict[str, Any] = {"status": "ok", "erros": []} if ok else {"status": "erro", "erros": FINAL}
        named = {"fonte": order["payload"]["fonte"], "dados": dados} if collects else {"resultado": dados}
        envelope = {
            "correlation_id": order["correlation_id"],
            "tipo_evento": "resultado_coleta" if collects else "resultado_execucao",
            "payload": {**named, **said},
            "timestamp": "2025-10-14T12:00:00Z",
            "ticket_id": order["ticket_id"],
            "tentativa": order["tentativa"],
        }
        assert self.ask("POST", f"{API}/results", 202, json=envelope)["aceitos"] == 1

    def work(self, queue: str, ok: bool = True, dados: Any = None) -> None:
        self.reply(self.lease(queue), ok, dados)

    def end(self, name: str, status: str) -> dict[str, Any]:
        result = eventually(lambda: self._result(name), name)
        assert result["status"] == status, result
        return result

    def _result(self, name: str) -> dict[str, Any] | None:
        answer = self._http.get(f"{RUNS}/{name}/result", params={"wait": 10})
        document: dict[str, Any] = answer.json()
        return document if answer.status_code == 200 else None

    def show(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = self.ask("GET", f"{RUNS}/{name}", 200)
        return document

    def failed(self, name: str, **request: Any) -> str:
        self.begin(name, **request)
        self.work(f"escavador_{name}", ok=False)
        self.end(name, "erro")
        return name

    def named(self, **query: Any) -> list[str]:
        listed = self.ask("GET", RUNS, 200, params={"limit": 500, **query})["orchestrations"]
        return [one["correlation_id"] for one in listed]

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", f"{API}/system-events", 200)["eventos"]
        return found


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    server = Server(tmp_path_factory.mktemp("contract"), [])
    server.up()
    one = Caller(server)
    yield one
    one.close()
    server.kill()


# -- one orchestration: pause, resume, urgency -----------------------------------------------------------------------


def test_a_paused_run_sends_nothing_and_its_deadline_stands_still(caller: Caller) -> None:
    name = caller.begin("parar", timeout_s=3600, coletas=[{"fonte": "parar1"}], execucoes=[{"executador": "parar2"}])
    order = caller.lease("escavador_parar1")
    before = datetime.fromisoformat(caller.show(name)["prazo"])
    paused = caller.ask("POST", f"{RUNS}/{name}/pause", 200, json={"motivo": "quota"})
    assert (paused["correlation_id"], paused["status"], paused["pausada"]) == (name, "em_execucao", True)
    assert (paused["pausa"]["ator"], paused["pausa"]["motivo"], paused["mudou"]) == ("local", "quota", True)
    assert caller.ask("POST", f"{RUNS}/{name}/pause", 200)["mudou"] is False
    caller.reply(order)  # what is with workers may finish
    eventually(lambda: caller.show(name)["tickets"][0]["status"] == "concluida")
    assert caller.nothing_in("executador_parar2") and caller.named(pausada="true") == [name]
    resumed = caller.ask("POST", f"{RUNS}/{name}/resume", 200)
    assert (resumed["pausada"], resumed["pausa"], resumed["mudou"]) == (False, None, True)
    journal = caller.ask("GET", f"{RUNS}/{name}/events", 200)["events"]
    stood = [one for one in journal if one["evento"] in ("orchestration_paused", "orchestration_resumed")]
    length = datetime.fromisoformat(stood[1]["em"]) - datetime.fromisoformat(stood[0]["em"])
    assert datetime.fromisoformat(caller.show(name)["prazo"]) - before == length > timedelta()
    caller.work("executador_parar2")
    caller.end(name, "concluida")
    assert caller.ask("POST", f"{RUNS}/{name}/pause", 409)["code"]
    assert caller.ask("POST", f"{RUNS}/nenhuma/resume", 404)["code"] == "unknown_id"


def test_an_instant_does_not_move_with_a_pause(caller: Caller) -> None:
    at = datetime.fromtimestamp(time.time() + 2, UTC).isoformat()
    tasks = {"relogio": {"espera": {"ate": at}}, "depois": {"fonte": "depois", "depende": ["relogio"]}}
    name = caller.begin("instante", tarefas=tasks)
    caller.ask("POST", f"{RUNS}/{name}/pause", 200)
    eventually(lambda: caller.show(name)["tickets"][0]["status"] == "concluida")
    assert caller.nothing_in("escavador_depois")
    caller.ask("POST", f"{RUNS}/{name}/resume", 200)
    caller.work("escavador_depois")
    caller.end(name, "concluida")


def test_urgency_changes_in_either_vocabulary(caller: Caller) -> None:
    name = caller.begin("urgente")
    first = caller.ask("PATCH", f"{RUNS}/{name}", 200, json={"prioridade": 9, "motivo": "cliente"})
    assert first == {"correlation_id": name, "status": "em_execucao", "prioridade": 9, "mudou": True}
    again = caller.ask("PATCH", f"{RUNS}/{name}", 200, json={"priority": 9, "reason": "x"}, params={"words": "en"})
    assert (again["status"], again["priority"], again["mudou"]) == ("running", 9, False)
    assert caller.show(name)["prioridade"] == 9
    for wrong in (0, 10, "9", 2.5):
        caller.ask("PATCH", f"{RUNS}/{name}", 422, json={"prioridade": wrong})
    caller.ask("POST", f"{RUNS}/{name}/cancel", 200, json={"reason": "feito"})
    caller.ask("PATCH", f"{RUNS}/{name}", 409, json={"prioridade": 1})


# -- try again -------------------------------------------------------------------------------------------------------

MAPPED: dict[str, Any] = {
    "lista": {"fonte": "lista"},
    "cada": {
        "para_cada": "${{ lista.dados }}",
        "como": "item",
        "fan_in": {"modo": "todas_ok"},
        "faz": {"executador": "item", "parametros": {"item": "${{ item }}"}},
    },
    "fim": {"executador": "fim", "depende": ["cada"]},
}


def _mapped(caller: Caller, name: str) -> None:
    """A run whose map has three items, the second of which failed."""
    caller.begin(name, tarefas=MAPPED, rotulos=["cliente:mapa"])
    caller.work("escavador_lista", dados=["a", "b", "c"])
    orders = {(one := caller.lease("executador_item"))["payload"]["parametros"]["item"]: one for _ in range(3)}
    for item in ("a", "c", "b"):  # the last one is what the map fails by
        caller.reply(orders[item], ok=item != "b", dados="feito")
    caller.end(name, "erro")


def test_a_retry_from_the_failures_reuses_items_and_is_linked_both_ways(caller: Caller) -> None:
    _mapped(caller, "mapa")
    made = caller.ask("POST", f"{RUNS}/mapa/retry", 202, json={"de": "falhas"})
    new = made["correlation_id"]
    assert new != "mapa" and made["origem"] == "mapa"
    order = caller.lease("executador_item")
    assert (order["correlation_id"], order["payload"]["parametros"]) == (new, {"item": "b"})
    caller.reply(order, dados="feito")
    caller.work("executador_fim")
    result = caller.end(new, "concluida")
    assert [one["resultado"] for one in result["tarefas"]["cada"]["resultados"]] == ["feito"] * 3
    assert caller.nothing_in("escavador_lista") and caller.nothing_in("executador_item")
    shown = caller.show(new)
    assert (shown["origem"], shown["de"], shown["rotulos"]) == ("mapa", "falhas", ["cliente:mapa"])
    assert caller.show("mapa")["retentativas"] == [new] and caller.show("mapa")["status"] == "erro"
    assert set(caller.named(rotulo="cliente:mapa")) == {"mapa", new}


def test_a_retry_from_a_task_runs_it_and_what_is_behind(caller: Caller) -> None:
    tasks = {"um": {"fonte": "um"}, "dois": {"executador": "dois", "parametros": {"x": "${{ um.dados }}"}}}
    caller.begin("tarefas", tarefas=tasks)
    caller.work("escavador_um", dados=1)
    caller.work("executador_dois", ok=False)
    caller.end("tarefas", "erro")
    made = caller.ask("POST", f"{RUNS}/tarefas/retry", 202, json={"tarefa": "um"})
    assert caller.show(made["correlation_id"])["tarefa"] == "um"
    caller.work("escavador_um", dados=2)
    order = caller.lease("executador_dois")
    assert order["payload"]["parametros"] == {"x": 2}
    caller.reply(order)
    caller.end(made["correlation_id"], "concluida")
    english = caller.ask("POST", f"{RUNS}/tarefas/retry", 202, json={"task": "dois"}, params={"words": "en"})
    assert english["origin"] == "tarefas" and "origem" not in english
    order = caller.lease("executador_dois")
    assert (order["correlation_id"], order["payload"]["parametros"]) == (english["correlation_id"], {"x": 1})
    caller.reply(order)
    caller.end(english["correlation_id"], "concluida")
    assert caller.nothing_in("escavador_um")
    assert caller.ask("POST", f"{RUNS}/tarefas/retry", 422, json={"tarefa": "nenhuma"})["code"] == "no_such_task"


@pytest.mark.parametrize("body", [{"de": "inicio"}, {"from": "start"}])
def test_a_retry_from_the_start_does_everything_again(caller: Caller, body: dict[str, str]) -> None:
    name = "desde" + next(iter(body))
    tasks = {"um": {"fonte": f"{name}1"}, "dois": {"fonte": f"{name}2", "depende": ["um"]}}
    caller.begin(name, tarefas=tasks)
    caller.work(f"escavador_{name}1")
    caller.work(f"escavador_{name}2", ok=False)
    caller.end(name, "erro")
    new = caller.ask("POST", f"{RUNS}/{name}/retry", 202, json=body)["correlation_id"]
    assert caller.show(new)["de"] == "inicio"
    assert caller.ask("GET", f"{RUNS}/{new}", 200, params={"words": "en"})["de"] == "start"
    caller.work(f"escavador_{name}1")
    caller.work(f"escavador_{name}2")
    caller.end(new, "concluida")
    caller.ask("POST", f"{RUNS}/{name}/retry", 422, json={"de": "falhas", "tarefa": "um"})
    caller.ask("POST", f"{RUNS}/nenhuma/retry", 404)


# -- many ------------------------------------------------------------------------------------------------------------


def _bulk(caller: Caller, action: str, label: str, **more: Any) -> tuple[int, int]:
    done = caller.ask("POST", f"{RUNS}/bulk", 200, json={"filtro": {"rotulo": label}, "acao": action, **more})
    assert set(done) == {
        "acao", "simular", "total", "feitas", "inalteradas", "recusadas", "restantes", "erros", "parou",
    }  # fmt: skip
    assert (done["acao"], done["simular"]) == (action, more.get("simular", False))
    left = done["total"] - done["feitas"]  # of a count that is everything
    assert (done["recusadas"], done["restantes"], done["erros"], done["parou"]) == (0, left, [], None)
    return done["total"], done["feitas"]


def test_the_four_actions_in_bulk_are_counted_and_done(caller: Caller) -> None:
    names = [caller.begin(f"lote{n}", rotulos=["lote"]) for n in range(3)]
    other = caller.begin("outro", rotulos=["outro"])
    for action, states in (("pause", True), ("resume", False)):
        assert _bulk(caller, action, "lote", simular=True) == (3, 0)
        assert [caller.show(name)["pausada"] for name in names] == [not states] * 3
        assert _bulk(caller, action, "lote") == (3, 3)
        assert [caller.show(name)["pausada"] for name in names] == [states] * 3
        assert _bulk(caller, action, "lote") == (0, 0)
    caller.work("escavador_lote0", ok=False)
    caller.end("lote0", "erro")
    assert _bulk(caller, "retry", "lote", simular=True) == (1, 0)
    assert caller.show("lote0")["retentativas"] == []
    assert _bulk(caller, "retry", "lote") == (1, 1)
    [again] = caller.show("lote0")["retentativas"]
    assert _bulk(caller, "cancel", "lote", simular=True) == (3, 0)
    assert _bulk(caller, "cancel", "lote") == (3, 3)
    for name in (again, "lote1", "lote2"):
        caller.end(name, "cancelada")
    assert caller.show(other)["status"] != "cancelada"
    english = {"filter": {"status": ["running", "pending"], "source": "outro"}, "action": "cancel", "dry_run": True}
    assert caller.ask("POST", f"{RUNS}/bulk", 200, json=english)["total"] == 1
    caller.ask("POST", f"{RUNS}/bulk", 422, json={"filtro": {}, "acao": "cancel"})
    caller.ask("POST", f"{RUNS}/bulk", 422, json={"filtro": {"rotulo": "lote"}, "acao": "delete"})


@pytest.mark.parametrize("ndjson", [False, True], ids=["array", "ndjson"])
def test_a_batch_answers_each_line_on_its_own_in_order(caller: Caller, ndjson: bool) -> None:
    prefix = "nd" if ndjson else "js"
    lines: list[dict[str, Any]] = [
        {"coletas": [{"fonte": "x"}], "correlation_id": f"{prefix}1"},
        {"coletas": []},
        {"collects": [{"source": "x"}], "correlation_id": f"{prefix}3"},
        {"tipo": "nenhum"},
        {"coletas": [{"fonte": "y"}], "correlation_id": f"{prefix}1"},
    ]
    if ndjson:
        texts = [json.dumps(one) for one in lines]
        kind, body = "application/x-ndjson", "\n".join([*texts[:2], "", *texts[2:]]) + "\n{broken\n"
    else:
        kind, body = "application/json", json.dumps([*lines, "broken"])
    sent = {"content": body.encode(), "headers": {"content-type": kind}}
    answer = caller.ask("POST", f"{RUNS}/batch", 207, **sent)
    assert set(answer) == {"itens"}
    items = answer["itens"]
    assert [one["status"] for one in items] == [202, 422, 202, 422, 409, 422 if not ndjson else 400], items
    assert items[0] == {"status": 202, "correlation_id": f"{prefix}1"}
    assert items[2] == {"status": 202, "correlation_id": f"{prefix}3"}
    for one in (items[1], *items[3:]):
        assert {"type", "title", "status", "detail", "instance", "code"} <= set(one) and "correlation_id" not in one
    assert "nenhum" in items[3]["detail"]
    assert [caller.show(f"{prefix}{n}")["correlation_id"] for n in (1, 3)] == [f"{prefix}1", f"{prefix}3"]
    english = caller.ask("POST", f"{RUNS}/batch", 207, **sent, params={"words": "en"})
    assert [one["status"] for one in english["items"]][:3] == [202, 422, 202]


# -- destinations ----------------------------------------------------------------------------------------------------


def test_a_destination_and_everything_pause_and_go_on(caller: Caller) -> None:
    queue = "escavador_destino"
    for path, target in ((f"{API}/queues/{queue}", queue), (API, None)):
        paused = caller.ask("POST", f"{path}/pause", 200, json={"motivo": "deploy"})
        assert set(paused) == {"fila", "pausada", "pausa", "mudou"}
        assert (paused["fila"], paused["pausada"], paused["mudou"]) == (target, True, True)
        assert (paused["pausa"]["ator"], paused["pausa"]["motivo"]) == ("local", "deploy")
        name = caller.begin(f"destino{target is None}", coletas=[{"fonte": "destino"}])
        waits = eventually(lambda name=name: caller.show(name)["espera"], "the run says what it waits for")
        assert "deploy" in json.dumps(waits) and caller.nothing_in(queue)
        [listed] = caller.ask("GET", f"{API}/pauses", 200)["pausas"]
        assert (listed["fila"], listed["motivo"]) == (target, "deploy")
        resumed = caller.ask("POST", f"{path}/resume", 200)
        assert resumed == {"fila": target, "pausada": False, "pausa": None, "mudou": True}
        assert caller.ask("POST", f"{path}/resume", 200)["mudou"] is False
        caller.work(queue)
        caller.end(name, "concluida")
    kinds = [(one["evento"], one.get("motivo")) for one in caller.events()]
    assert ("destination_paused", "deploy") in kinds and ("destination_resumed", "") in kinds


# -- schedules -------------------------------------------------------------------------------------------------------

YEARLY = {"cron": "0 0 1 1 *", "requisicao": {"coletas": [{"fonte": "agenda"}]}}


@pytest.mark.parametrize("overlap", ["pular", "enfileirar", "cancelar_anterior", "permitir"])
def test_a_schedule_keeps_every_field(caller: Caller, overlap: str) -> None:
    path, end = f"{SCHEDULES}/campos-{overlap}", "2999-12-31T00:00:00Z"
    document = {
        "cron": "30 6 * * 1-5",
        "fuso": "America/Sao_Paulo",
        "requisicao": {"tarefas": {"um": {"fonte": "agenda"}}, "rotulos": ["cliente:agenda"]},
        "sobreposicao": overlap,
        "recuperar_s": 60,
        "jitter_s": 5,
        "fim": end,
    }
    made = caller.ask("PUT", path, 201, json=document)
    shown = caller.ask("GET", path, 200)
    assert made == shown and made["nome"] == f"campos-{overlap}" and made["pausada"] is None
    for field in ("cron", "fuso", "sobreposicao", "recuperar_s", "jitter_s"):
        assert shown[field] == document[field], field
    assert datetime.fromisoformat(shown["fim"]) == datetime.fromisoformat(end)
    assert shown["requisicao"]["tarefas"]["um"]["fonte"] == "agenda"
    assert all(one.endswith("T09:30:00Z") for one in shown["proximos"])
    caller.ask("PUT", path, 200, json={"intervalo_s": 3600, "requisicao": YEARLY["requisicao"]})
    upcoming = caller.ask("GET", f"{path}/upcoming", 200, params={"n": 3})
    assert set(upcoming) == {"instantes"}
    first, second, third = (datetime.fromisoformat(one) for one in upcoming["instantes"])
    assert second - first == third - second == timedelta(hours=1) and first.minute == first.second == 0
    caller.ask("DELETE", path, 204)
    for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/upcoming"), ("POST", "/trigger"), ("POST", "/pause")):
        assert caller.ask(method, f"{path}{rest}", 404)["code"] == "unknown_id"


def test_a_schedule_reads_and_answers_in_english_words(caller: Caller) -> None:
    path = f"{SCHEDULES}/english"
    body = {**YEARLY, "requisicao": {"collects": [{"source": "agenda", "params": {"fonte": 1}}], "labels": ["a"]}}
    made = caller.ask("PUT", path, 201, json={**body, "ended_at": "2999-01-01T00:00:00Z"}, params={"words": "en"})
    assert made["ended_at"] and made["paused"] is None
    assert made["requisicao"]["collects"] == body["requisicao"]["collects"]
    assert caller.ask("GET", path, 200)["fim"] == made["ended_at"]
    assert caller.ask("POST", f"{path}/pause", 200, json={"reason": "audit"})["pausada"]["motivo"] == "audit"
    span = {"from": "2020-06-01T00:00:00Z", "until": "2022-06-01T00:00:00Z"}
    filled = caller.ask("POST", f"{path}/backfill", 202, json=span, params={"words": "en"})
    assert [one["correlation_id"] for one in filled["items"]] == [
        "english@2021-01-01T00:00:00Z",
        "english@2022-01-01T00:00:00Z",
    ]
    caller.ask("PUT", path, 422, json={**body, "fim": None, "ended_at": "2999-01-01T00:00:00Z"})


def test_a_schedule_is_paused_triggered_resumed_and_made_up_for(caller: Caller) -> None:
    path = f"{SCHEDULES}/ano"
    caller.ask("PUT", path, 201, json=YEARLY)
    paused = caller.ask("POST", f"{path}/pause", 200, json={"motivo": "férias"})["pausada"]
    assert (paused["por"], paused["motivo"]) == ("local", "férias") and datetime.fromisoformat(paused["em"])
    name = caller.ask("POST", f"{path}/trigger", 202)["correlation_id"]
    schedule, _, instant = name.partition("@")
    assert schedule == "ano" and datetime.fromisoformat(instant).tzinfo is not None
    assert caller.show(name)["rotulos"] == ["agenda:ano"]
    assert caller.ask("POST", f"{path}/resume", 200)["pausada"] is None
    span = {"de": "2020-01-01T00:00:00Z", "ate": "2022-06-01T00:00:00Z"}
    names = [f"ano@{year}-01-01T00:00:00Z" for year in (2020, 2021, 2022)]
    for started, status in ((3, 202), (0, 200)):
        filled = caller.ask("POST", f"{path}/backfill", 202, json=span)
        assert filled["iniciadas"] == started
        assert [(one["status"], one["correlation_id"]) for one in filled["itens"]] == [(status, one) for one in names]
    assert set(caller.named(rotulo="agenda:ano")) == {*names, name}
    said = [one["acao"] for one in caller.events() if one.get("agenda") == "ano"]
    assert said == ["backfilled", "backfilled", "resumed", "triggered", "paused", "put"]


def test_the_run_of_an_instant_is_named_after_it_and_overlap_is_as_it_says(caller: Caller) -> None:
    request = {"coletas": [{"fonte": "sobre"}]}
    for overlap in ("pular", "enfileirar", "cancelar_anterior", "permitir"):
        body = {"intervalo_s": 1, "requisicao": request, "sobreposicao": overlap}
        caller.ask("PUT", f"{SCHEDULES}/{overlap}", 201, json=body)
    count = 3
    eventually(lambda: len(caller.named(rotulo="agenda:permitir")) >= count)
    eventually(lambda: len(caller.named(rotulo="agenda:cancelar_anterior", status="cancelada")) >= count)
    eventually(lambda: caller.ask("GET", f"{SCHEDULES}/enfileirar", 200)["em_fila"] >= count)
    eventually(lambda: caller.ask("GET", f"{SCHEDULES}/pular", 200)["instantes"].get("skipped", 0) >= count)
    for overlap in ("pular", "enfileirar", "cancelar_anterior", "permitir"):
        caller.ask("DELETE", f"{SCHEDULES}/{overlap}", 204)
    open_runs = "pendente,em_execucao"
    for overlap in ("pular", "enfileirar", "cancelar_anterior"):
        assert len(caller.named(rotulo=f"agenda:{overlap}", status=open_runs)) == 1, overlap
    assert len(caller.named(rotulo="agenda:pular")) == len(caller.named(rotulo="agenda:enfileirar")) == 1
    for name in caller.named(rotulo="agenda:permitir"):
        _, _, instant = name.partition("@")
        assert instant.endswith("Z") and datetime.fromisoformat(instant).microsecond == 0
    bulk = {"filtro": {"fonte": "sobre"}, "acao": "cancel"}
    caller.ask("POST", f"{RUNS}/bulk", 200, json=bulk)


# -- system events, labels -------------------------------------------------------------------------------------------


def test_system_events_say_who_paused_what_over_http_and_in_the_shell(caller: Caller, tmp_path: Path) -> None:
    name = caller.begin("quem")
    caller.ask("POST", f"{RUNS}/{name}/pause", 200, json={"motivo": "olhar"})
    caller.ask("POST", f"{RUNS}/{name}/resume", 200, json={"motivo": "visto"})
    caller.ask("POST", f"{RUNS}/{name}/resume", 200)  # changes nothing, and says nothing
    resumed, paused = caller.events()[:2]
    assert (paused["evento"], resumed["evento"]) == ("orchestration_paused", "orchestration_resumed")
    for one, why in ((paused, "olhar"), (resumed, "visto")):
        assert (one["correlation_id"], one["ator"], one["motivo"]) == (name, "local", why)
        assert datetime.fromisoformat(one["em"]).tzinfo is not None
    shell = Process(["events", "--json", "--url", caller.server.url], tmp_path, {})
    shell.begin()
    assert shell.popen is not None
    printed = shell.popen.stdout.read()
    assert shell.wait() == 0 and "orchestration_paused" in printed and "olhar" in printed


def test_labels_are_listed_filtered_and_kept_on_children_and_retries(caller: Caller) -> None:
    labels = ["cliente:acme", *(f"r{n}" for n in range(15))]
    child = {"filha": {"coletas": [{"fonte": "neta"}]}}
    caller.begin("familia", tarefas={"um": child}, rotulos=labels)
    caller.work("escavador_neta", ok=False)
    caller.end("familia", "erro")
    assert set(caller.named(rotulo="cliente:acme")) == {"familia", "familia/um"}
    assert caller.show("familia%2Fum")["rotulos"] == labels
    new = caller.ask("POST", f"{RUNS}/familia/retry", 202)["correlation_id"]
    caller.work("escavador_neta")
    caller.end(new, "concluida")
    found = caller.ask("GET", RUNS, 200, params={"rotulo": "cliente:acme"})["orchestrations"]
    assert len(found) == 4 and all(one["rotulos"] == labels for one in found)
    for wrong in ([*labels, "one more"], ["x" * 1000], [""], [1]):
        caller.ask("POST", RUNS, 422, json={"coletas": [{"fonte": "x"}], "rotulos": wrong})


# -- signals and approvals -------------------------------------------------------------------------------------------

WAITS: dict[str, Any] = {
    "antes": {"fonte": "antes"},
    "um": {"espera": {"sinal": "revisao"}, "depende": ["antes"]},
    "dois": {"espera": {"sinal": "revisao"}, "depende": ["um"]},
}


def test_signals_are_kept_taken_in_order_and_answered_as_written(caller: Caller) -> None:
    name = caller.begin("sinais", tarefas=WAITS)
    path = f"{RUNS}/{name}/signals/revisao"
    assert caller.show(name)["prazo"] is None  # a wait, and no timeout_s of its own
    key = {"Idempotency-Key": "um-so"}
    for _ in range(2):
        assert caller.ask("POST", path, 202, json={"dados": {"nota": 1}}, headers=key) == {"tarefa": None}
    assert caller.ask("POST", f"{RUNS}/{name}/signals/outro", 422)["code"]
    caller.work("escavador_antes")
    eventually(lambda: caller.show(name)["agregado"]["tarefas"]["um"]["status"] == "concluida")
    eventually(lambda: caller.show(name)["agregado"]["tarefas"]["dois"].get("espera"))
    taken = caller.ask("POST", path, 202, json={"data": 2}, params={"words": "en"})
    assert taken == {"task": "dois"}
    result = caller.end(name, "concluida")
    assert [result["tarefas"][task]["dados"] for task in ("um", "dois")] == [{"nota": 1}, 2]
    assert caller.ask("POST", path, 409)["code"]
    caller.ask("POST", f"{RUNS}/nenhuma/signals/revisao", 404)


def test_more_signals_than_are_kept_are_refused(caller: Caller) -> None:
    name = caller.begin("muitos", tarefas=WAITS)
    path = f"{RUNS}/{name}/signals/revisao"
    for n in range(100):
        assert caller.ask("POST", path, 202, json={"dados": n}) == {"tarefa": None}
    caller.ask("POST", path, 429, json={"dados": 100})
    caller.ask("POST", f"{RUNS}/{name}/cancel", 200)


@pytest.mark.parametrize(
    ("verb", "status", "goes_on"), [("approve", "concluida", True), ("reject", "cancelada", False)]
)
def test_an_approval_is_given_or_refused(caller: Caller, verb: str, status: str, goes_on: bool) -> None:
    wait = {"espera": {"aprovacao": {"pergunta": "pode?"}}}
    tasks = {"a": wait, "b": wait, "envio": {"fonte": f"envio-{verb}", "depende": ["a", "b"]}}
    name = caller.begin(f"decidir-{verb}", tarefas=tasks)
    assert caller.ask("POST", f"{RUNS}/{name}/{verb}", 409)["code"]  # several wait
    caller.ask("POST", f"{RUNS}/{name}/approve", 200, json={"tarefa": "a"})
    body = {"task": "b", "reason": "visto"}
    said = caller.ask("POST", f"{RUNS}/{name}/{verb}", 200, json=body, params={"words": "en"})
    assert (said["correlation_id"], said["aplicada"], said["status"] in ("running", "cancelled")) == (name, True, True)
    if goes_on:
        caller.work(f"escavador_envio-{verb}")
    result = caller.end(name, status)
    assert result["tarefas"]["b"]["status"] == status
    if goes_on:
        assert result["tarefas"]["b"]["dados"]["aprovado"] is True
    else:
        assert result["tarefas"]["envio"]["status"] in ("cancelada", "ignorada")
    caller.ask("POST", f"{RUNS}/{name}/{verb}", 409, json={"tarefa": "b"})
