"""`step` as a whole: what comes out, what it costs, and that chance commands never break what must hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from core.chance import HAPPENINGS, PLANS, fitted
from core.given import RUN, Story, at, coleta, dag, operations, plan
from oraculo.core.commands import Cancel, ConfirmDispatch, RecordDelivery, Start, Wake
from oraculo.core.effects import Notify, Publish
from oraculo.core.events import OrchestrationStarted, TicketsDispatched
from oraculo.core.plan import Plan
from oraculo.core.step import step
from oraculo.core.vocabulary import Kind, Phase, Status, Verdict


def test_start() -> None:
    wanted = plan(2, 1, timeout=60)
    done = step(None, Start(RUN, "abc123", wanted, "f"), at(0))
    assert done.events == [OrchestrationStarted(RUN, "abc123", wanted, at(60), "f"), TicketsDispatched([0, 1], 1)]
    assert done.effects == [Publish([(0, 1), (1, 1)])]
    assert (done.first, done.verdict, done.state.version) == (1, Verdict.APPLIED, 2)


@pytest.mark.parametrize("command", [Wake(), Cancel(), ConfirmDispatch([]), RecordDelivery(0, 1, True, False)])
def test_only_start_is_for_what_does_not_exist(command: object) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        step(None, command, at(0))


def test_a_message_that_the_same_step_made_pointless_is_not_sent() -> None:
    """Its time is over in the very step that would have sent it again."""
    story = Story(plan(1, attempts=2, timeout=10))
    story.fail(0, when=9.999)
    done = story.wake(10)
    assert done.effects == []


def test_the_end_owes_one_notice_per_target() -> None:
    story = Story(plan(1, webhook="https://example.com/x", fila="avisos"))
    assert story.ok(0).effects == [Notify(0, 1), Notify(1, 1)]


# -- cost --------------------------------------------------------------------------------------------------------------


def cost_of_a_result(width: int, command: str) -> int:
    story = Story(plan(width, 1, attempts=2), check=False)
    story.confirm()
    chosen = width // 2
    answer = {
        "ok": story.answer(chosen),
        "fail": story.answer(chosen, ok=False),
        "bare": story.bare(Kind.COLETA, f"fonte{chosen}"),
        "late": story.answer(chosen),
    }[command]
    if command == "bare":
        story.state.open_named(Kind.COLETA, "x")  # the index is made once
    if command == "late":
        story.ok(chosen)
    return operations(lambda: step(story.state, answer, at(1)))


@pytest.mark.parametrize("command", ["ok", "fail", "bare", "late"])
def test_the_cost_of_a_result_does_not_depend_on_the_width(command: str) -> None:
    narrow, wide = cost_of_a_result(10, command), cost_of_a_result(10_000, command)
    assert narrow > 50
    assert wide <= narrow * 1.05


def test_the_cost_of_a_result_in_a_graph_is_the_gates_it_feeds() -> None:
    def cost(width: int) -> int:
        depends: dict[str, list[str]] = {f"a{n}": [] for n in range(width)}
        depends |= {f"b{n}": [f"a{n}"] for n in range(width)}
        story = Story(dag(depends), check=False)
        answer = story.answer(1)
        return operations(lambda: step(story.state, answer, at(1)))

    assert cost(5_000) <= cost(10) * 1.05


def test_the_cost_of_waking_one_ticket_does_not_depend_on_the_width() -> None:
    def cost(width: int) -> int:
        tasks = [coleta(f"f{n}", timeout=100, attempts=2) for n in range(width)]
        tasks[3] = coleta("f3", timeout=5, attempts=2)
        story = Story(plan(tasks), check=False)
        story.confirm()
        return operations(lambda: step(story.state, Wake(), at(5)))

    assert cost(10_000) <= cost(10) * 1.05


# -- chance ------------------------------------------------------------------------------------------------------------


@given(PLANS, HAPPENINGS)
@settings(deadline=None, derandomize=True, max_examples=300)
def test_whatever_comes_the_rules_hold(wanted: Plan, commands: list[tuple[object, float]]) -> None:
    """Story checks fold == state after each step; here: nothing moves once closed, counts agree, all of it ends."""
    story = Story(wanted)
    closed: dict[int, tuple[object, ...]] = {}
    now = 0.0
    for command, pause in commands:
        now += pause
        command = fitted(command, wanted)
        deadlines = {p: t.due_at for p, t in enumerate(story.state.tickets) if t.phase is Phase.RUNNING}
        story.do(command, now)
        state = story.state
        assert state is not None
        assert state.open == sum(1 for t in state.tickets if t.phase is not Phase.CLOSED)
        assert state.owed == {p for p, t in enumerate(state.tickets) if t.phase is Phase.OWED}
        for gate, count in zip(wanted.gates, state.gates, strict=True):
            inputs = [state.tickets[p] for p in gate.inputs]
            assert count.closed == sum(1 for t in inputs if t.phase is Phase.CLOSED)
            assert count.ok == sum(1 for t in inputs if t.status is Status.CONCLUIDA)
        for position, ticket in enumerate(state.tickets):
            if ticket.phase is Phase.CLOSED:
                facts = (ticket.status, ticket.closed_at, ticket.dados, ticket.attempt, ticket.reason)
                assert closed.setdefault(position, facts) == facts
                if ticket.status is Status.TIMEOUT and position in deadlines and ticket.closed_at == at(now):
                    due = deadlines[position]
                    assert due is not None and at(now) >= min(due, state.deadline)
        assert state.status.final == (state.closed_at is not None) == (state.open == 0)
    if not story.status.final:
        story.wake(10_000)
    assert story.status.final


@given(PLANS)
@settings(deadline=None, derandomize=True, max_examples=100)
def test_if_nobody_ever_answers_it_ends_by_itself(wanted: Plan) -> None:
    story = Story(wanted)
    for _ in range(200):
        if story.status.final:
            break
        if story.state.owed:
            story.confirm()
        wake = story.state.wake_at()
        assert wake is not None
        story.wake((wake - at(0)).total_seconds())
    assert story.status in (Status.TIMEOUT, Status.ERRO)
