"""Every engine tells the same stories: real processes, a worker that the test plays, and journals that replay."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from contracts.engine_cases import CASES, EngineCase, answer, source, until

pytestmark = pytest.mark.timeout(180)
ENGINES = [pytest.param(name, marks=pytest.mark.xdist_group(f"engine-{name}")) for name in CASES]
FAULT = [{"codigo": "quebrou", "mensagem": "não deu", "definitivo": True}]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineCase]:
    case = CASES[request.param](tmp_path_factory.mktemp(request.param))
    try:
        case.start()
        yield case
    finally:
        case.close()


def collects(count: int, **options: Any) -> list[dict[str, Any]]:
    return [{"fonte": source(), "parametros": {"n": n}, **options} for n in range(count)]


async def test_the_whole_flow(engine: EngineCase) -> None:
    first, second = collects(2)
    executor = source()
    name = engine.submit(coletas=[first, second], execucoes=[{"executador": executor}])
    for one in (second, first):
        order = await engine.take(one["fonte"])
        assert order["payload"] == {"fonte": one["fonte"], "parametros": one["parametros"]}
        await engine.send(answer(order, [one["parametros"]]))
    order = await engine.take(executor, "executador")
    assert [one["dados"] for one in order["payload"]["dados"]] == [[{"n": 0}], [{"n": 1}]]
    await engine.send(answer(order, {"arquivo": "relatorio.pdf"}))
    result = engine.result(name)
    assert result["status"] == "concluida"
    assert [one["dados"] for one in result["coletas"]] == [[{"n": 0}], [{"n": 1}]]
    assert result["execucoes"][0]["resultado"]["resultado"] == {"arquivo": "relatorio.pdf"}
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["FanInClosed"], events["AttemptFailed"]) == (3, 2, 0)


async def test_a_lost_reply_is_asked_for_again(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=0.5, max_tentativas=50)
    name = engine.submit(coletas=[one])
    first = await engine.take(one["fonte"])
    second = await engine.take(one["fonte"])
    assert (first["tentativa"], second["tentativa"]) == (1, 2)
    assert first["ticket_id"] == second["ticket_id"]
    await engine.send(answer(second, 2))
    result = engine.result(name)
    assert (result["status"], result["coletas"][0]["dados"]) == ("concluida", 2)
    events = await engine.journal(name)
    assert (events["AttemptFailed"], events["TicketConcluded"]) == (result["coletas"][0]["tentativas"] - 1, 1)


async def test_who_wants_to_know_is_told(engine: EngineCase) -> None:
    (one,) = collects(1)
    name = engine.submit(coletas=[one], notificar={"fila": f"avisos_{source()}"})
    await engine.send(answer(await engine.take(one["fonte"]), 1))
    assert engine.result(name)["status"] == "concluida"
    events = await engine.journal(name)
    assert (events["NoticeDelivered"], events["NoticeFailed"]) == (1, 0)


async def test_a_large_answer(engine: EngineCase) -> None:
    (one,) = collects(1)
    name = engine.submit(coletas=[one])
    await engine.send(answer(await engine.take(one["fonte"]), "x" * 700_000))
    assert engine.result(name)["coletas"][0]["dados"] == "x" * 700_000
    await engine.journal(name)


async def test_a_duplicate_counts_once(engine: EngineCase) -> None:
    first, second = collects(2)
    name = engine.submit(coletas=[first, second])
    before = await engine.counted("duplicate")
    said = answer(await engine.take(first["fonte"]), "a")
    await engine.send(said, said)
    await engine.send(said)
    await until(lambda: _more(engine, "duplicate", before + 2))
    await engine.send(answer(await engine.take(second["fonte"]), "b"))
    result = engine.result(name)
    assert [one["dados"] for one in result["coletas"]] == ["a", "b"]
    assert (await engine.journal(name))["TicketConcluded"] == 2


async def test_a_late_answer_is_kept_and_changes_nothing(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=1, max_tentativas=1)
    name = engine.submit(coletas=[one])
    order = await engine.take(one["fonte"])
    result = engine.result(name)
    assert (result["status"], result["coletas"][0]["status"]) == ("erro", "timeout")
    before = await engine.counted("late")
    await engine.send(answer(order, "tarde"))
    await until(lambda: _more(engine, "late", before + 1))
    assert engine.result(name) == result
    assert (await engine.journal(name))["LateAnswerKept"] == 1


async def test_its_own_time_passes(engine: EngineCase) -> None:
    name = engine.submit(coletas=collects(2), execucoes=[{"executador": source()}], timeout_s=0.5)
    result = engine.result(name)
    assert result["status"] == "timeout"
    assert [one["dados"] for one in result["coletas"]] == [None, None]
    await engine.journal(name)


def cognitive(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A plan of Fluxo C whose tasks go to classes of workers of their own."""
    named = [{"task_id": f"t{n}", "task_type": "EXECUTE", "description": "x", **one} for n, one in enumerate(tasks)]
    return {
        "plan_id": f"plan-{source()}", "intent_id": "intent", "risk_band": "low", "tasks": named,
        "execution_order": [one["task_id"] for one in named], "correlation_id": f"corr-{source()}", **more,
    }  # fmt: skip


async def test_a_plan_of_fluxo_c_is_approved_fails_and_is_undone(engine: EngineCase) -> None:
    first, second = source(), source()
    plan = cognitive(
        {"worker": first}, {"worker": second, "dependencies": ["t0"], "max_retries": 0}, requires_approval=True
    )
    taken = engine.call("POST", "/plans", json=plan)
    assert taken["status"] == "awaiting_approval"
    name = taken["correlation_id"]
    assert engine.call("POST", f"/orchestrations/{name}/approve", json={"por": "ana"})["aplicada"] is True
    await engine.send(answer(await engine.take(first, "executador"), "feito"))
    await engine.send(answer(await engine.take(second, "executador"), errors=FAULT))
    for worker in (second, first):
        undo = await engine.take(worker, "executador")
        assert undo["task_type"] == "COMPENSATE"
        await engine.send(answer(undo, "desfeito"))
    result = engine.result(name)
    assert (result["status"], result["fluxo_c"]["metrics"]["compensated_tickets"]) == ("parcial", 2)
    events = await engine.journal(name)
    assert (events["ApprovalGiven"], events["CompensationStarted"], events["TicketConcluded"]) == (1, 1, 3)
    again = engine.call("POST", "/plans", json=plan)
    assert again["correlation_id"] == name


async def test_cancelled(engine: EngineCase) -> None:
    first, second = collects(2)
    name = engine.submit(coletas=[first, second], execucoes=[{"executador": source()}])
    orders = [await engine.take(one["fonte"]) for one in (first, second)]
    await engine.send(answer(orders[0], 1))
    await until(lambda: _tickets(engine, name, "concluida", 1))
    engine.call("POST", f"/orchestrations/{name}/cancel")
    result = engine.result(name)
    assert result["status"] == "cancelada"
    assert [one["status"] for one in result["coletas"]] == ["concluida", "cancelada"]
    before = await engine.counted("late")
    await engine.send(answer(orders[1], 2))
    await until(lambda: _more(engine, "late", before + 1))
    assert engine.result(name) == result
    events = await engine.journal(name)
    assert (events["CancelRequested"], events["LateAnswerKept"]) == (1, 1)


async def test_all_of_them_and_one_failed(engine: EngineCase) -> None:
    good, bad = collects(2)
    executor = source()
    name = engine.submit(coletas=[good, bad], execucoes=[{"executador": executor}], fan_in={"modo": "todos"})
    await engine.send(answer(await engine.take(bad["fonte"]), errors=FAULT))
    await engine.send(answer(await engine.take(good["fonte"]), "bom"))
    order = await engine.take(executor, "executador")
    assert [one["status"] for one in order["payload"]["dados"]] == ["concluida", "erro"]
    await engine.send(answer(order, 1))
    assert engine.result(name)["status"] == "parcial"
    assert (await engine.journal(name))["TicketFailed"] == 1


@pytest.mark.parametrize(("fan_in", "needed"), [({"modo": "quorum", "minimo": 2}, 2), ({"modo": "primeiro"}, 1)])
async def test_enough_of_them(engine: EngineCase, fan_in: dict[str, Any], needed: int) -> None:
    wanted = collects(3)
    name = engine.submit(coletas=wanted, fan_in=fan_in)
    for one in wanted[:needed]:
        await engine.send(answer(await engine.take(one["fonte"]), one["parametros"]))
    result = engine.result(name)
    assert result["status"] == "concluida"
    ended = ["concluida"] * needed + ["cancelada"] * (3 - needed)
    assert [one["status"] for one in result["coletas"]] == ended
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["FanInClosed"]) == (needed, 1)


async def test_many_that_nobody_knew_before(engine: EngineCase) -> None:
    wanted = collects(12)
    name = engine.submit(coletas=wanted)
    await engine.send(*[answer(await engine.take(one["fonte"]), one["parametros"]) for one in wanted])
    assert engine.result(name)["status"] == "concluida"
    assert (await engine.journal(name))["TicketConcluded"] == 12


async def test_what_came_in_until_the_deadline(engine: EngineCase) -> None:
    answered, silent = collects(2, max_tentativas=1)
    executor = source()
    name = engine.submit(coletas=[answered, {**silent, "timeout_s": 0.5}], execucoes=[{"executador": executor}])
    await engine.send(answer(await engine.take(answered["fonte"]), "a tempo"))
    order = await engine.take(executor, "executador")
    assert [one["status"] for one in order["payload"]["dados"]] == ["concluida", "timeout"]
    await engine.send(answer(order, 1))
    assert engine.result(name)["status"] == "parcial"
    await engine.journal(name)


async def test_killed_and_restarted_halfway(engine: EngineCase) -> None:
    first, second = collects(2)
    executor = source()
    name = engine.submit(coletas=[first, second], execucoes=[{"executador": executor}])
    await engine.send(answer(await engine.take(first["fonte"]), 1))
    await until(lambda: _tickets(engine, name, "concluida", 1))
    engine.kill()
    await asyncio.to_thread(engine.start)
    await engine.send(answer(await engine.take(second["fonte"]), 2))
    order = await engine.take(executor, "executador")
    await engine.send(answer(order, 3))
    result = engine.result(name)
    assert (result["status"], [one["tentativas"] for one in result["coletas"]]) == ("concluida", [1, 1])
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["AttemptFailed"]) == (3, 0)


async def _more(engine: EngineCase, verdict: str, count: int) -> bool:
    return await engine.counted(verdict) >= count


async def _tickets(engine: EngineCase, name: str, status: str, count: int) -> bool:
    tickets = engine.call("GET", f"/orchestrations/{name}")["tickets"]
    return sum(one["status"] == status for one in tickets) == count
