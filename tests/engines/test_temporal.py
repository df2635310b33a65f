"""What is peculiar to the engine `temporal`: long histories, large plans, a server that is away, its tools."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError

import servers
from engines.temporal_world import World, closed, connected, marked, opened
from oraculo.core.commands import Approve, RecordResult
from oraculo.core.flow.cognitive import TaskNode
from oraculo.core.ticket_id import ticket_id
from oraculo.engines.temporal.connection import Address, connect
from oraculo.engines.temporal.messages import ConfirmedOrders, StepReport
from oraculo.errors import DuplicateCorrelationError, EngineUnavailableError
from oraculo.ports.work import Work
from oraculo.runtime.answers import AnswerReader
from oraculo.wire import names
from waiting import until

pytestmark = pytest.mark.xdist_group("engine-temporal")


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


async def test_answers_by_hand_in_every_form(world: World) -> None:
    """Failures are honoured, and no form of the signal stops the workflow."""
    coletas = [{"fonte": f"f{secrets.token_hex(4)}", "max_tentativas": 2} for _ in range(4)]
    name = (await world.oraculo.submit({"coletas": coletas})).correlation_id
    handle = world.temporal.get_workflow_handle(f"orch-{name}")
    orders = [await world.order(coleta["fonte"]) for coleta in coletas]
    tickets = [order["ticket_id"] for order in orders]
    for nonsense in ([], [7], [None, {}], [{"no": "id"}], ["", 1], ["unknown", 1], [tickets[0], {"status": "RUNNING"}]):
        await handle.signal("ticket_completed", args=nonsense)
    failed = {"status": "FAILED", "error_message": "partiu", "result": {"success": False, "metadata": {}}}
    await handle.signal("ticket_completed", args=[tickets[0], failed])
    again = await world.order(coletas[0]["fonte"])
    assert (again["ticket_id"], again["tentativa"]) == (tickets[0], 2)
    await handle.signal("ticket_completed", args=[{"ticket_id": tickets[0], **failed}])
    await handle.signal("ticket_completed", args=[tickets[1], {"success": False, "metadata": {"definitivo": "true"}}])
    await handle.signal("ticket_completed", args=[tickets[2]])
    await handle.signal("ticket_completed", args=[tickets[3], {"ok": 1}, "more"])
    found = (await world.result(name))["coletas"]
    assert [one["status"] for one in found] == ["erro", "erro", "concluida", "concluida"]
    assert [one["tentativas"] for one in found] == [2, 1, 1, 1]
    assert found[0]["erros"][-1]["mensagem"] == "partiu" and found[3]["dados"] == {"ok": 1}
    await world.check(name)


async def test_where_tokens_are_required_an_answer_by_hand_needs_one_too(tmp_path: Path) -> None:
    """In the result, or as a third argument; without the right one it is a dead letter, and the workflow goes on."""
    async with opened(tmp_path, servers.shared("temporal"), ORACULO_RESULT_TOKENS="require") as found:
        world = await connected(found)
        name, sources = await world.submit(2)
        first, second = [await world.order(source) for source in sources]
        handle = world.temporal.get_workflow_handle(f"orch-{name}")
        ticket = first["ticket_id"]
        forged = [[ticket, {"a": 1}], [ticket], [ticket, 1, second["token"]], [{"ticket_id": ticket, "token": "x"}]]
        for arguments in forged:
            await handle.signal("ticket_completed", args=arguments)

        async def quarantined() -> bool:
            return len(await world.oraculo.store.dead_letters(reason="unauthenticated")) == len(forged)

        await until(quarantined)
        await handle.signal("ticket_completed", args=[ticket, {"a": "mão", "token": first["token"]}])
        await handle.signal("ticket_completed", args=[second["ticket_id"], 2, second["token"]])
        result = await world.result(name)
        assert [one["dados"] for one in result["coletas"]] == [{"a": "mão"}, 2]
        await world.check(name)


async def test_a_workflow_that_another_program_started_fails_and_leaves_its_id_free(world: World) -> None:
    plan_id = f"p{secrets.token_hex(4)}"
    queue = world.engine.connection.address.task_queue
    stranger = {"consolidated_decision": {"decision_id": "d"}, "cognitive_plan": {"plan_id": plan_id}}
    handle = await world.temporal.start_workflow(
        "OrchestrationWorkflow", stranger, id=f"orch-{plan_id}", task_queue=queue
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "task queue shared" in str(failed.value.cause)
    source = f"f{secrets.token_hex(4)}"
    await world.oraculo.submit({"coletas": [{"fonte": source}], "correlation_id": plan_id})
    await world.answer(await world.order(source))
    assert (await world.result(plan_id))["status"] == "concluida"


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
    await world.engine.submit([AnswerReader()(raw, names.RESULTS)])

    async def kept() -> bool:
        return [one.reason for one in await world.oraculo.store.dead_letters()] == ["ambiguous"]

    await until(kept)
    (letter,) = await world.oraculo.store.dead_letters()
    assert (letter.body, letter.correlation_id) == (raw, accepted.correlation_id)
    await world.answer(*orders)
    await world.result(accepted.correlation_id)


async def test_a_plan_that_does_not_fit_into_a_payload(world: World) -> None:
    sources = [f"f{secrets.token_hex(4)}" for _ in range(5)]
    coletas = [{"fonte": one, "parametros": {"x": secrets.token_hex(98_000)}} for one in sources]
    template = {"coletas": coletas}
    await world.oraculo.requests.put_task_type("enorme", template)
    parametros = {"y": secrets.token_hex(280_000)}
    accepted = await world.oraculo.submit({"tipo": "enorme", "parametros": parametros})
    handle = world.temporal.get_workflow_handle(f"orch-{accepted.correlation_id}")
    orders = [await world.order(one) for one in sources]
    assert orders[0]["payload"]["parametros"]["x"] == coletas[0]["parametros"]["x"]
    await world.answer(*orders)
    assert (await world.result(accepted.correlation_id))["status"] == "concluida"
    assert await handle.result() == "concluida"
    history = await handle.fetch_history()
    assert sum(event.ByteSize() for event in history.events) < 100_000


async def test_what_is_tried_again_is_not_done_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    once = world.engine.activities.carry_out
    forgetful = 0

    async def twice(report: StepReport) -> ConfirmedOrders | None:
        """As if Temporal had not heard of the first time; now and then the process does not know of it either."""
        nonlocal forgetful
        first = await once(report)
        forgetful += 1
        if forgetful % 2:
            world.engine.activities._states.cache.drop(report.run)
        assert await once(report) == first
        return first

    monkeypatch.setattr(world.engine.activities, "carry_out", twice)
    name, (first, second) = await world.submit(2, execucoes=[{"executador": "soma"}], notificar={"fila": "avisos"})
    source = [await world.order(first), await world.order(second)]
    await world.answer(source[0])
    await world.answer(source[0], source[1])  # one is a duplicate
    await world.answer(await world.order("soma", "executador"))
    assert (await world.result(name))["status"] == "concluida"
    await world.temporal.get_workflow_handle(f"orch-{name}").result()
    for queue in (f"escavador_{first}", f"escavador_{second}", "executador_soma"):
        assert await world.oraculo.broker.fetch(queue, limit=1, wait=0) == []
    assert len(await world.oraculo.broker.fetch("avisos", limit=2, wait=0)) == 1
    counts = await world.oraculo.store.counts()
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
    (letter,) = await world.oraculo.store.dead_letters()
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
            assert world.engine.status().outage is not None
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


async def test_what_was_done_before_a_continue_as_new_is_undone_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new workflow knows the tickets of the old one from the journal, and leaves their parameters there; it may be
    followed by another one in the midst of undoing, and every step may be tried again."""
    server = servers.own("temporal", tmp_path)
    server.options = ("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=25")  # type: ignore[attr-defined]
    server.start()
    try:
        async with opened(tmp_path, server.url) as world:
            once = world.engine.activities.carry_out

            async def twice(report: StepReport) -> ConfirmedOrders | None:
                first = await once(report)
                assert await once(report) == first
                return first

            monkeypatch.setattr(world.engine.activities, "carry_out", twice)
            await _is_undone(await connected(world))
    finally:
        server.kill()


async def _is_undone(world: World) -> None:
    last = 9
    names_of_tasks = [f"t{number}" for number in range(last + 1)]
    nodes = [
        TaskNode(
            name, "BUILD", dependencies=tuple(names_of_tasks[number - 1 : number]), max_retries=0,
            parameters=b'{"peca":%d}' % number,
        )
        for number, name in enumerate(names_of_tasks)
    ]  # fmt: skip
    name = await world.plan(*nodes)
    handle = world.temporal.get_workflow_handle(f"orch-{name}")
    runs = [(await handle.describe()).run_id]

    async def is_another() -> bool:
        return (await handle.describe()).run_id != runs[-1]

    tickets = []
    for number in range(last):
        order = await world.order(name, "executador")
        tickets.append(order["ticket_id"])
        await world.answer(order, dados={"feito": number})
        await until(partial(closed, world, name, number + 1))
    await until(is_another)
    runs.append((await handle.describe()).run_id)
    failing = await world.order(name, "executador")
    await world.answer(failing, errors=[{"codigo": "x", "mensagem": "não deu", "definitivo": True}])
    for number in reversed(range(last + 1)):  # the one that failed, too: something may have been done for it
        undoing = await world.order(name, "executador")
        asked = undoing["payload"]["parametros"]
        assert asked["original_ticket_id"] == [*tickets, failing["ticket_id"]][number]
        assert (asked["peca"], asked["action"]) == (number, "delete_artifacts")
        await world.answer(undoing, dados={"desfeito": number})
        await until(partial(closed, world, name, 2 * last + 2 - number))
    found = (await world.result(name))["fluxo_c"]
    assert (found["compensation_triggered"], found["metrics"]["compensated_tickets"]) == (True, last + 1)
    assert {one["status"] for one in found["compensation_results"]} == {"COMPLETED"}
    assert [one["status"] for one in found["tickets_summary"]] == ["COMPENSATED"] * (last + 1)
    assert await is_another()
    state = await world.oraculo.state(name)
    assert [one.attempt for one in state.tickets] == [1] * (2 * last + 2)
    await world.check(name)
