"""What is peculiar to the engine `temporal`: long histories, large plans, a server that is away, its tools."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

import servers
from engines.temporal_world import World, closed, connected, marked, opened, until
from oraculo.core.cognitive import TaskNode
from oraculo.core.commands import Approve, RecordResult
from oraculo.core.ticket_id import ticket_id
from oraculo.engines.temporal.link import Address, connect
from oraculo.engines.temporal.parcels import Confirmed, Made
from oraculo.errors import DuplicateCorrelationError, EngineUnavailableError
from oraculo.runtime.intake import result_work
from oraculo.runtime.work import Work
from oraculo.wire import names

pytestmark = [pytest.mark.timeout(60), pytest.mark.xdist_group("engine-temporal")]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with opened(tmp_path, servers.shared("temporal")) as found:
        yield await connected(found)


async def test_what_temporals_own_tools_see(world: World) -> None:
    await until(lambda: marked(world))
    name, (first, second) = await world.submit(2, correlation_id=f"visto {secrets.token_hex(4)}")
    order = await world.order(first)
    handle = world.temporal.get_workflow_handle(f"orch-{name}")
    status = await handle.query("get_status")
    assert (status["status"], status["tickets_total"], status["tickets_abertos"]) == ("em_execucao", 2, 2)
    await world.answer(order)
    await world.answer(await world.order(second))
    assert (await world.result(name))["status"] == "concluida"
    tickets = await handle.query("get_tickets")
    assert [one["status"] for one in tickets] == ["concluida", "concluida"]
    assert await handle.result() == "concluida"

    async def found() -> bool:
        query = f"OraculoCorrelation = '{name}' AND OraculoStatus = 'concluida'"
        return [one.id async for one in world.temporal.list_workflows(query)] == [f"orch-{name}"]

    await until(found)
    await world.check(name)


async def test_answers_and_cancellations_by_hand(world: World) -> None:
    name, (first, second) = await world.submit(2)
    handle = world.temporal.get_workflow_handle(f"orch-{name}")
    order = await world.order(first)
    await world.order(second)
    await handle.signal("ticket_completed", args=[order["ticket_id"], {"a": "mão"}])
    await handle.signal("tickets_completed", "not from an engine")
    await handle.signal("cancel_workflow", "chega")
    result = await world.result(name)
    assert (result["status"], result["coletas"][0]["dados"]) == ("cancelada", {"a": "mão"})
    other, _ = await world.submit(1)
    await world.temporal.get_workflow_handle(f"orch-{other}").cancel()
    assert (await world.result(other))["status"] == "cancelada"
    third, _ = await world.submit(1)
    assert await world.oraculo.cancel(third, "pela API")
    assert not await world.oraculo.cancel(third, "outra vez")
    for one in (name, other, third):
        await world.check(one)


async def test_a_request_that_comes_twice(world: World) -> None:
    name = f"x{secrets.token_hex(4)}"
    request = {"coletas": [{"fonte": "eco"}], "correlation_id": name}
    one, two = await asyncio.gather(world.oraculo.submit(request), world.oraculo.submit(request))
    assert one.run == two.run and {one.new, two.new} == {True, False}
    with pytest.raises(DuplicateCorrelationError):
        await world.oraculo.submit({"coletas": [{"fonte": "outra"}], "correlation_id": name})
    keyed = {"coletas": [{"fonte": "eco"}]}
    first = await world.oraculo.submit(keyed, idempotency_key="k1")
    assert (await world.oraculo.submit(keyed, idempotency_key="k1")).run == first.run
    with pytest.raises(DuplicateCorrelationError):
        await world.oraculo.submit({"coletas": [{"fonte": "mais"}]}, idempotency_key="k1")


async def test_a_plan_that_waits_for_approval(world: World) -> None:
    await until(lambda: marked(world))
    plan_id = await world.plan(TaskNode("a", "BUILD"), TaskNode("b", "DEPLOY", dependencies=("a",)), approval=True)
    state = await world.oraculo.state(plan_id)
    assert state.awaits_approval
    (outcome,) = await world.engine.submit([Work(Approve(True, "ana"), plan_id)])
    assert outcome.reason == "applied"
    assert (await world.oraculo.state(plan_id)).approved_by == "ana"
    await world.answer(await world.order(plan_id, "executador"))
    await world.order(plan_id, "executador")
    query = f"OraculoPlan = '{plan_id}' AND OraculoRisk = 'high' AND OraculoIntent = 'i1'"

    async def found() -> bool:
        return [one.id async for one in world.temporal.list_workflows(query)] == [f"orch-{plan_id}"]

    await until(found)
    await world.oraculo.cancel(plan_id)
    await world.check(plan_id)


async def test_what_nobody_can_use_is_kept(world: World) -> None:
    source = f"f{secrets.token_hex(4)}"
    accepted = await world.oraculo.submit({"coletas": [{"fonte": source}, {"fonte": source}]})
    orders = [await world.order(source) for _ in range(2)]
    nameless = {"fonte": source, "dados": 1}
    message = {
        "correlation_id": accepted.correlation_id,
        "tipo_evento": "resultado_coleta",
        "payload": nameless,
        "timestamp": "2025-10-14T12:00:00Z",
    }
    raw = json.dumps(message).encode()
    await world.engine.submit([result_work(raw, names.RESULTS)])

    async def kept() -> bool:
        return [one.reason for one in await world.engine.store.dead_letters()] == ["ambiguous"]

    await until(kept)
    (letter,) = await world.engine.store.dead_letters()
    assert (letter.body, letter.correlation_id) == (raw, accepted.correlation_id)
    await world.answer(*orders)
    await world.result(accepted.correlation_id)


async def test_a_plan_that_does_not_fit_into_a_payload(world: World) -> None:
    sources = [f"f{secrets.token_hex(4)}" for _ in range(5)]
    coletas = [{"fonte": one, "parametros": {"x": secrets.token_hex(98_000)}} for one in sources]
    template = {"coletas": coletas}
    await world.oraculo.reception.put_task_type("enorme", template)
    parametros = {"y": secrets.token_hex(280_000)}
    accepted = await world.oraculo.submit({"tipo": "enorme", "parametros": parametros})
    handle = world.temporal.get_workflow_handle(f"orch-{accepted.correlation_id}")
    orders = [await world.order(one) for one in sources]
    assert orders[0]["payload"]["parametros"]["x"] == coletas[0]["parametros"]["x"]  # type: ignore[index]
    await world.answer(*orders)
    assert (await world.result(accepted.correlation_id))["status"] == "concluida"
    assert await handle.result() == "concluida"
    history = await handle.fetch_history()
    assert sum(event.ByteSize() for event in history.events) < 100_000


async def test_what_is_tried_again_is_not_done_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    once = world.engine.carry_out
    forgetful = 0

    async def twice(made: Made) -> Confirmed | None:
        """As if Temporal had not heard of the first time; now and then the process does not know of it either."""
        nonlocal forgetful
        first = await once(made)
        forgetful += 1
        if forgetful % 2:
            world.engine.handler.cache.drop(made.run)
        assert await once(made) == first
        return first

    monkeypatch.setattr(world.engine, "carry_out", twice)
    name, (first, second) = await world.submit(2, execucoes=[{"executador": "soma"}], notificar={"fila": "avisos"})
    source = [await world.order(first), await world.order(second)]
    await world.answer(source[0])
    await world.answer(source[0], source[1])  # one is a duplicate
    await world.answer(await world.order("soma", "executador"))
    assert (await world.result(name))["status"] == "concluida"
    await world.temporal.get_workflow_handle(f"orch-{name}").result()
    for queue in (f"escavador_{first}", f"escavador_{second}", "executador_soma"):
        assert await world.engine.broker.fetch(queue, limit=1, wait=0) == []
    assert len(await world.engine.broker.fetch("avisos", limit=2, wait=0)) == 1
    counts = await world.engine.store.counts()
    assert counts == {(names.RESULTS, "applied"): 3, (names.RESULTS, "duplicate"): 1}
    await world.check(name)


async def test_answers_that_are_no_envelopes(world: World) -> None:
    name, (source,) = await world.submit(1)
    order = await world.order(source)
    told = RecordResult(True, b'{"de": "outra fila"}', [], ticket=order["ticket_id"], attempt=1, digest=7)
    unreadable = bytes(range(256))
    stray = RecordResult(True, b"1", [], ticket=ticket_id(1, 1))
    works = [Work(command, name, queue="execution.results", body=unreadable) for command in (stray, told)]
    await world.engine.submit(works)
    assert (await world.result(name))["coletas"][0]["dados"] == {"de": "outra fila"}
    (letter,) = await world.engine.store.dead_letters()
    assert (letter.queue, letter.reason, letter.body) == ("execution.results", "unknown_ticket", unreadable)


async def test_a_namespace_that_is_not_there_is_named() -> None:
    host, _, port = servers.shared("temporal").partition(":")
    with pytest.raises(EngineUnavailableError, match="outro"):
        await connect(Address(host, int(port), "outro"), "teste")


async def test_a_workflow_that_is_gone_begins_anew(world: World) -> None:
    name, (first, second) = await world.submit(2)
    orders = [await world.order(first), await world.order(second)]
    await world.answer(orders[0], dados="antes")
    await until(lambda: closed(world, name, 1))
    await world.temporal.get_workflow_handle(f"orch-{name}").terminate()
    await world.answer(orders[1], dados="depois")
    result = await world.result(name)
    assert [one["dados"] for one in result["coletas"]] == ["antes", "depois"]
    await world.check(name)


async def test_histories_do_not_grow_for_ever(tmp_path: Path) -> None:
    server = servers.own("temporal", tmp_path)
    server.options = ("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=25")  # type: ignore[attr-defined]
    try:
        async with opened(tmp_path, server.url) as world:
            with pytest.raises(EngineUnavailableError):
                await world.submit(1)
            assert world.engine.failing is not None
            server.start()
            await _goes_on(await connected(world))
    finally:
        server.kill()


async def _goes_on(world: World) -> None:
    name, sources = await world.submit(14)
    handle = world.temporal.get_workflow_handle(f"orch-{name}")
    first = (await handle.describe()).run_id
    for number, source in enumerate(sources):
        await world.answer(await world.order(source), dados=number)
        await until(partial(closed, world, name, number + 1))
    result = await world.result(name)
    assert [one["dados"] for one in result["coletas"]] == list(range(14))
    assert [one["tentativas"] for one in result["coletas"]] == [1] * 14
    assert (await handle.describe()).run_id != first
    await world.check(name)
