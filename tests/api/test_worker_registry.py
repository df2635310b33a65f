"""Workers register over HTTP: they are found, drained, lost by the store's clock, and their tickets move on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, CurlWorker, assert_problem, client_of, result_of, settings_for
from oraculo import Worker
from oraculo.adapters.stores.sqlite.workers import SqliteWorkers
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from oraculo.worker.http import HttpTransport
from waiting import until

QUEUE = "escavador_a"


class StoreClock:
    """The clock of the store, which a test moves on."""

    def __init__(self, oraculo: Oraculo) -> None:
        leases = oraculo.store.worker_leases
        assert isinstance(leases, SqliteWorkers)
        self._now: Callable[[], int] = leases.now
        self._ahead = 0
        leases.now = lambda: self._now() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += round(seconds * 1_000_000)


@pytest.fixture
def store_clock(oraculo: Oraculo) -> StoreClock:
    return StoreClock(oraculo)


async def register(client: httpx2.AsyncClient, name: str, **said: Any) -> dict[str, Any]:
    response = await client.post(f"{API}/workers", json={"worker": name, "filas": [QUEUE], "timeout_s": 30, **said})
    assert response.status_code == 201, response.text
    told: dict[str, Any] = response.json()
    return told


async def shown(client: httpx2.AsyncClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"{API}/workers/{name}")).json()
    return found


async def test_a_registered_worker_is_shown_with_all_that_it_said(client: httpx2.AsyncClient) -> None:
    about = {"capacidades": ["python"], "concorrencia": 4, "recursos": {"cpu_m": 500}, "versao": "1.2", "host": "n1"}
    told = await register(client, "w1", **about)
    assert (told["worker"], told["drenar"], told["proximo_s"]) == ("w1", False, 7.5)
    one = await shown(client, "w1")
    assert {key: one[key] for key in about} == about
    assert (one["situacao"], one["transporte"], one["filas"], one["nivel"]) == ("ativo", "http", [QUEUE], "INTERNAL")
    assert one["registrado_em"] == told["registrado_em"] and one["expira_em"] == told["expira_em"]
    english = {"worker": "w2", "queues": [QUEUE], "capabilities": ["python"], "concurrency": 2}
    assert (await client.post(f"{API}/workers", json=english)).status_code == 201
    assert (await shown(client, "w2"))["concorrencia"] == 2


async def test_a_host_beats_for_its_workers_and_each_is_answered_on_its_own(client: httpx2.AsyncClient) -> None:
    for name in ("w1", "w2"):
        await register(client, name)
    await client.post(f"{API}/workers/w2/drain")
    before = await shown(client, "w1")
    said = [
        {"worker": "w1", "em_andamento": 1, "telemetria": {"fila": 3}},
        {"worker": "nobody"},
        {"worker": "w2", "in_flight": 0, "running": [{"ticket_id": "t", "attempt": 1}]},
    ]
    answer = await client.post(f"{API}/workers/heartbeats", json=said)
    assert answer.status_code == 207, answer.text
    first, unknown, drained = answer.json()["itens"]
    assert first == {"worker": "w1", "drenar": False, "proximo_s": 7.5, "parar": []}
    assert (unknown["worker"], unknown["status"], unknown["code"]) == ("nobody", 404, "unknown_id")
    assert (drained["worker"], drained["drenar"]) == ("w2", True)

    async def written() -> bool:
        now = await shown(client, "w1")
        return bool(now["telemetria"] == {"fila": 3} and now["expira_em"] > before["expira_em"])

    await until(written)
    for wrong in ({"worker": "w1"}, [{"em_andamento": 1}], [{"worker": "w1"}] * 1001, [{"worker": "w1", "x": 1}]):
        assert_problem(await client.post(f"{API}/workers/heartbeats", json=wrong), 422, "invalid_request")


async def test_workers_are_found_by_capability_queue_and_state_the_best_first(client: httpx2.AsyncClient) -> None:
    await register(client, "busy", capacidades=["python", "gpu"], concorrencia=2, em_andamento=2)
    await register(client, "free", capacidades=["python"], concorrencia=2)
    await register(client, "other", filas=["escavador_b"])

    async def names(**query: Any) -> list[str]:
        found = (await client.get(f"{API}/workers", params=query)).json()["workers"]
        return [one["nome"] for one in found]

    assert await names() == ["busy", "free", "other"]
    assert await names(capacidade="python") == ["busy", "free"]
    assert await names(capacidade=["python", "gpu"]) == ["busy"]
    assert await names(fila="escavador_b") == ["other"]
    assert await names(capacidade="python", limit=1) == ["free"]
    assert await names(situacao="perdido") == []
    assert_problem(await client.get(f"{API}/workers", params={"situacao": "x"}), 422, "invalid_parameter")


async def test_a_lost_worker_is_gone_at_once_and_its_ticket_moves_on(
    client: httpx2.AsyncClient, oraculo: Oraculo, store_clock: StoreClock, submit: Callable[..., Any]
) -> None:
    await register(client, "w1")
    await register(client, "w2")
    run = await submit({"coletas": [{"fonte": "a", "max_tentativas": 1}]})
    first, second = CurlWorker(client, "w1"), CurlWorker(client, "w2")
    [order] = await first.take(QUEUE, 1)
    assert (await shown(client, "w1"))["executando"][0]["ticket_id"] == order["mensagem"]["ticket_id"]
    await oraculo.registry.flush()
    store_clock.advance(20)
    await client.put(f"{API}/workers/w2/heartbeat", json={})
    await oraculo.registry.flush()
    store_clock.advance(10.5)  # w1 was last heard of 30.5 seconds ago, w2 10.5
    assert (await shown(client, "w1"))["situacao"] == "perdido"
    assert await oraculo.registry.sweep() == 1
    [again] = await second.take(QUEUE, 1)
    assert (again["mensagem"]["ticket_id"], again["mensagem"]["tentativa"]) == (order["mensagem"]["ticket_id"], 2)
    assert_problem(await client.put(f"{API}/workers/w1/heartbeat", json={}), 404, "unknown_id")
    assert_problem(await client.post(f"{API}/leases/{order['lease_id']}/extend"), 404, "unknown_id")
    await second.answer(result_of(again["mensagem"], status="ok", dados=[1]))
    result = (await client.get(f"{API}/orchestrations/{run}/result", params={"wait": 10})).json()
    assert (result["status"], result["coletas"][0]["dados"]) == ("concluida", [1])
    events = (await client.get(f"{API}/orchestrations/{run}/events")).json()["events"]
    [moved] = [one for one in events if one["evento"] == "ticket_withdrawn"]
    assert (moved["worker"], moved["causa"], moved["tentativa"]) == ("w1", "realocado", 1)
    ticket = (await client.get(f"{API}/tickets/{order['mensagem']['ticket_id']}")).json()
    assert (ticket["causas"], ticket["tentativas"], ticket["erros"]) == (["realocado"], 2, [])
    system = (await client.get(f"{API}/system-events")).json()["eventos"]
    assert [one["worker"] for one in system if one["evento"] == "worker_lost"] == ["w1"]
    store_clock.advance(5 * 30 + 1)
    await oraculo.registry.sweep()
    assert_problem(await client.get(f"{API}/workers/w1"), 404, "unknown_id")


async def test_what_a_worker_says_it_has_moves_on_and_the_good_answer_of_either_counts_once(
    client: httpx2.AsyncClient, oraculo: Oraculo, store_clock: StoreClock, submit: Callable[..., Any]
) -> None:
    """A worker whose orders do not come from here says what it has. It was not dead after all, and answers."""
    run = await submit({"coletas": [{"fonte": "a"}]})
    [order] = await CurlWorker(client, "unregistered").take(QUEUE, 1)
    ticket = order["mensagem"]["ticket_id"]
    await register(client, "w1", executando=[{"ticket_id": ticket, "tentativa": 1}])
    store_clock.advance(31)
    assert await oraculo.registry.sweep() == 1
    [again] = await CurlWorker(client, "w2").take(QUEUE, 1)
    assert again["mensagem"]["tentativa"] == 2
    await CurlWorker(client, "w1").answer(result_of(order["mensagem"], status="ok", dados="first"))
    told = await CurlWorker(client, "w2").answer(result_of(again["mensagem"], status="ok", dados="second"))
    assert told["resultados"][0]["situacao"] == "late"
    result = (await client.get(f"{API}/orchestrations/{run}/result", params={"wait": 10})).json()
    assert (result["status"], result["coletas"][0]["dados"]) == ("concluida", "first")


async def test_a_ticket_that_another_living_worker_has_stays_there(
    client: httpx2.AsyncClient, oraculo: Oraculo, store_clock: StoreClock, submit: Callable[..., Any]
) -> None:
    """A broker gives the orders of a dead connection to another worker itself, with the same attempt."""
    run = await submit({"coletas": [{"fonte": "a"}]})
    [order] = await CurlWorker(client, "x").take(QUEUE, 1)
    doing = [{"ticket_id": order["mensagem"]["ticket_id"], "tentativa": 1}]
    await register(client, "dead", executando=doing)
    await register(client, "alive", executando=doing, timeout_s=300)
    store_clock.advance(31)
    assert await oraculo.registry.sweep() == 1
    state = await oraculo.engine.state_of(run)
    assert state is not None and state.tickets[0].attempt == 1


async def test_asking_for_work_is_a_sign_of_life(
    client: httpx2.AsyncClient, oraculo: Oraculo, store_clock: StoreClock
) -> None:
    await register(client, "w1")
    store_clock.advance(29)
    await CurlWorker(client, "w1").lease(QUEUE, wait=0)
    await oraculo.registry.flush()
    store_clock.advance(29)
    assert await oraculo.registry.sweep() == 0
    assert (await shown(client, "w1"))["situacao"] == "ativo"


async def test_a_drained_worker_gets_nothing_until_it_is_resumed(
    client: httpx2.AsyncClient, submit: Callable[..., Any]
) -> None:
    await register(client, "w1")
    drained = (await client.post(f"{API}/workers/w1/drain", json={"motivo": "troca"})).json()
    assert (drained["situacao"], drained["drenagem"]["ator"], drained["drenagem"]["motivo"]) == (
        "drenando",
        "local",
        "troca",
    )
    assert (await client.put(f"{API}/workers/w1/heartbeat", json={})).json()["drenar"] is True
    await submit({"coletas": [{"fonte": "a"}]})
    assert await CurlWorker(client, "w1").lease(QUEUE, wait=0.1) == []
    assert (await register(client, "w1"))["drenar"] is True  # also when it comes again
    assert (await client.post(f"{API}/workers/w1/resume")).json()["situacao"] == "ativo"
    assert len(await CurlWorker(client, "w1").take(QUEUE, 1)) == 1
    assert_problem(await client.post(f"{API}/workers/nobody/drain"), 404, "unknown_id")


async def test_failures_and_the_last_error_are_counted_by_us(
    client: httpx2.AsyncClient, oraculo: Oraculo, submit: Callable[..., Any]
) -> None:
    await register(client, "w1")
    worker = CurlWorker(client, "w1")
    for number in range(12):
        await submit({"coletas": [{"fonte": "a", "max_tentativas": 1}]})
        erros = [{"codigo": "E", "mensagem": f"falhou {number}"}]
        await worker.do(QUEUE, status="erro", erros=erros)
    await oraculo.registry.flush()
    one = await shown(client, "w1")
    assert (one["respondidas"], one["falhas"], one["situacao"]) == (12, 12, "degradado")
    assert one["ultimo_erro"]["mensagem"] == "falhou 11"


async def test_goodbye_forgets_it_and_gives_back_what_it_has(
    client: httpx2.AsyncClient, submit: Callable[..., Any]
) -> None:
    await register(client, "w1")
    await submit({"coletas": [{"fonte": "a"}]})
    await CurlWorker(client, "w1").take(QUEUE, 1)
    assert (await client.delete(f"{API}/workers/w1")).status_code == 204
    assert_problem(await client.delete(f"{API}/workers/w1"), 404, "unknown_id")
    assert len(await CurlWorker(client, "w2").take(QUEUE, 1)) == 1


BAD = {
    "no name": ({}, "worker"),
    "a queue that is none": ({"worker": "w", "filas": ["a b"]}, "a b"),
    "no place": ({"worker": "w", "concorrencia": 0}, "concorrencia"),
    "an unknown level": ({"worker": "w", "nivel": "TOP"}, "nivel"),
    "an unknown field": ({"worker": "w", "cores": 3}, "cores"),
    "a name with blanks": ({"worker": " w"}, "blanks"),
    "too much telemetry": ({"worker": "w", "telemetria": {"x": "y" * 5000}}, "4096"),
    "too many tickets": ({"worker": "w", "executando": [{"ticket_id": "x"}] * 1001}, "executando"),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_registration_is_refused_and_says_why(client: httpx2.AsyncClient, case: str) -> None:
    said, named = BAD[case]
    response = await client.post(f"{API}/workers", json=said)
    assert response.status_code == 422 and named in response.text, response.text
    assert (await client.get(f"{API}/workers")).json()["workers"] == []


async def test_a_worker_that_lies_about_its_tickets_moves_nothing_of_others(
    client: httpx2.AsyncClient, oraculo: Oraculo, store_clock: StoreClock, submit: Callable[..., Any]
) -> None:
    run = await submit({"coletas": [{"fonte": "a"}]})
    state = await oraculo.engine.state_of(run)
    assert state is not None
    [order] = await CurlWorker(client, "honest").take(QUEUE, 1)
    said = [{"ticket_id": order["mensagem"]["ticket_id"], "tentativa": 9}, {"ticket_id": "nonsense"}]
    await register(client, "liar", executando=said)
    store_clock.advance(31)
    await oraculo.registry.sweep()
    state = await oraculo.engine.state_of(run)
    assert state is not None and state.tickets[0].attempt == 1


async def test_a_key_of_a_worker_registers_for_its_own_queues_only(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ORACULO_API_KEY="k" * 32)
    oraculo = Oraculo(settings)
    async with oraculo, client_of(create_app(oraculo), headers={"Authorization": f"Bearer {'k' * 32}"}) as admin:
        keys = []
        for queue in (QUEUE, "escavador_b"):
            made = await admin.post(f"{API}/keys", json={"role": "trabalhador", "queues": [queue]})
            keys.append(made.json()["key"])
        app = create_app(oraculo)
        async with (
            client_of(app, headers={"Authorization": f"Bearer {keys[0]}"}) as mine,
            client_of(app, headers={"Authorization": f"Bearer {keys[1]}"}) as other,
        ):
            await register(mine, "w1")
            refused = await mine.post(f"{API}/workers", json={"worker": "w2", "filas": ["escavador_b"]})
            assert_problem(refused, 403, "forbidden")
            assert_problem(await other.put(f"{API}/workers/w1/heartbeat", json={}), 404, "unknown_id")
            assert_problem(await other.delete(f"{API}/workers/w1"), 404, "unknown_id")
            assert_problem(await mine.post(f"{API}/workers/w1/drain"), 403, "forbidden")
            assert (await mine.put(f"{API}/workers/w1/heartbeat", json={})).status_code == 200
            assert (await shown(admin, "w1"))["situacao"] == "ativo"


async def test_a_python_worker_registers_says_what_it_does_and_leaves(
    served: httpx2.AsyncClient, oraculo: Oraculo
) -> None:

    worker, going = Worker(name="py", concurrency=2, capabilities=["python"]), asyncio.Event()

    @worker.collector("a")
    async def collect(params: dict[str, Any]) -> list[int]:
        await going.wait()
        return [1]

    transport = HttpTransport(str(served.base_url), None, "py", 30.0)
    running = asyncio.create_task(worker.run(transport, register=True))
    try:
        await until(lambda: oraculo.registry.one("py"), "it registers")
        await oraculo.submit({"coletas": [{"fonte": "a"}], "correlation_id": "r1"})
        await until(lambda: worker.busy, "it works")
        one = (await served.get(f"{API}/workers/py")).json()
        assert (one["capacidades"], one["concorrencia"], one["versao"][:7]) == (["python"], 2, "oraculo")
        going.set()
        assert (await oraculo.result("r1", wait=10) or {})["status"] == "concluida"
    finally:
        going.set()
        worker.stop()
        await running
    assert await oraculo.registry.one("py") is None
