"""Policies: what waits for a verdict, what follows from it, and that a journal replays without asking."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.given import Story, at, coleta, dag, plan
from oraculo.core.commands import Cancel, Judge, PauseRun, RequeueTicket, ResumeRun
from oraculo.core.effects import AskPolicies, Publish, owed_effects
from oraculo.core.events import (
    AnswerHeld,
    Event,
    OrchestrationClosed,
    PolicyAsked,
    PolicyEvaluated,
    TicketConcluded,
    TicketFailed,
    TicketsDispatched,
)
from oraculo.core.plan import Plan
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, PolicySource, PolicyViolation
from oraculo.core.policing import owed
from oraculo.core.replay import replay_step
from oraculo.core.sentences import errors_of
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import Phase, Status, Verdict
from oraculo.ports.journal import Recorded
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.wire import records, requests
from oraculo.wire.requests import Defaults

PLAN, TICKET, ALLOCATION, RESULT = PolicyPoint
SOURCE = PolicySource("teste", "v1", "d-1", "abc")
LONG = PolicyViolation("limites", "prazo", "longo demais", "high", "sla.timeout_ms", "10", "20")


def asked(made: Plan, *points: PolicyPoint) -> Plan:
    return replace(made, policies=points)


def said(point: PolicyPoint, *tickets: tuple[int, int], refused: tuple[int, ...] = (), error: str = "") -> Judge:
    findings = [PolicyFinding(one, False, [] if error else [LONG], error=error) for one in refused]
    return Judge(point, list(tickets), findings, SOURCE)


def kinds(events: list[Event]) -> list[type]:
    return [type(event) for event in events]


def replays(story: Story) -> None:
    """The journal, written and read back, decides the same again and folds to the same state."""
    state: Orchestration | None = None
    first = 1
    for when, events in story.journal:
        kept = records.decode(records.encode(events))
        assert kept == events
        done = replay_step(state, Recorded(story.run, first, when, kept))
        assert done.events == events
        state, first = done.state, first + len(events)
    assert state == story.state == fold(story.journal)


def test_a_plan_without_policies_asks_nothing() -> None:
    story = Story(plan(2))
    assert kinds(story.started.events)[1:] == [TicketsDispatched]
    assert story.state.policy is None


def test_a_plan_waits_for_its_verdict_and_goes_on_when_it_is_allowed() -> None:
    story = Story(asked(plan(2), PLAN))
    assert story.started.events[1:] == [PolicyAsked(PLAN, [(THE_PLAN, 0)])]
    assert story.started.effects == [AskPolicies()] == owed_effects(story.state)
    done = story.do(said(PLAN, (THE_PLAN, 0)))
    assert kinds(done.events) == [PolicyEvaluated, TicketsDispatched]
    assert done.effects == [Publish([(0, 1), (1, 1)])]
    assert story.do(said(PLAN, (THE_PLAN, 0))).verdict is Verdict.IDLE
    replays(story)


def test_a_plan_that_is_refused_ends_at_once_and_publishes_nothing() -> None:
    story = Story(asked(plan(2), PLAN, TICKET))
    done = story.do(said(PLAN, (THE_PLAN, 0), refused=(THE_PLAN,)))
    assert done.events[-1] == OrchestrationClosed(Status.ERRO)
    assert [one.status for one in story.state.tickets] == [Status.CANCELADA] * 2
    assert not any(isinstance(one, Publish) for one in story.effects)
    replays(story)


def test_tickets_are_asked_about_together_and_only_those_allowed_go_out() -> None:
    story = Story(asked(plan(3), TICKET))
    assert story.started.events[1:] == [PolicyAsked(TICKET, [(0, 0), (1, 0), (2, 0)])]
    assert {one.phase for one in story.state.tickets} == {Phase.JUDGED}
    done = story.do(said(TICKET, (0, 0), (1, 0), (2, 0), refused=(1,)))
    assert TicketsDispatched([0, 2], 1) in done.events
    assert [one.status for one in story.state.tickets] == [Status.PENDENTE, Status.ERRO, Status.PENDENTE]
    (error,) = errors_of(story.ticket(1))
    assert error["codigo"] == "politica" and "limites/prazo: longo demais" in error["mensagem"]
    replays(story)


def test_an_error_is_said_as_such() -> None:
    story = Story(asked(plan(1), TICKET))
    story.do(said(TICKET, (0, 0), refused=(0,), error="OPA não responde"))
    (error,) = errors_of(story.ticket(0), "en")
    assert error["mensagem"] == "the policies could not be asked: OPA não responde"


def test_verdicts_may_come_in_parts_and_twice() -> None:
    story = Story(asked(plan(3), TICKET))
    story.do(said(TICKET, (1, 0)))
    assert owed(story.state) == {0: 0, 2: 0}
    done = story.do(said(TICKET, (0, 0), (1, 0)))
    assert done.events == [PolicyEvaluated(TICKET, [(0, 0)], [], SOURCE), TicketsDispatched([0], 1)]
    replays(story)


def test_a_task_behind_others_is_asked_about_when_it_would_start() -> None:
    story = Story(asked(dag({"a": [], "b": ["a"]}), TICKET))
    story.do(said(TICKET, (0, 0)))
    story.confirm(0)
    done = story.ok(0)
    assert PolicyAsked(TICKET, [(1, 0)]) in done.events
    replays(story)


def test_a_second_attempt_is_not_asked_about() -> None:
    story = Story(asked(plan([coleta("a", attempts=2)]), TICKET))
    story.do(said(TICKET, (0, 0)))
    story.confirm(0)
    story.fail(0)
    due = story.ticket(0).due_at
    assert due is not None
    assert TicketsDispatched([0], 2) in story.wake((due - at(0)).total_seconds()).events
    replays(story)


def test_an_answer_waits_without_a_deadline_and_counts_when_it_is_allowed() -> None:
    story = Story(asked(plan([coleta("a", timeout=5)]), RESULT))
    story.confirm(0)
    answer = story.answer(0, dados=b'{"n":7}')
    done = story.do(answer, 1)
    assert kinds(done.events) == [AnswerHeld] and done.effects == [AskPolicies()]
    assert story.ticket(0).phase is Phase.JUDGED
    assert not any(event for event in story.wake(20).events)  # its attempt does not time out
    assert story.do(answer).verdict is Verdict.DUPLICATE
    done = story.do(said(RESULT, (0, 1)))
    assert kinds(done.events)[:2] == [PolicyEvaluated, TicketConcluded]
    assert story.ticket(0).dados == b'{"n":7}' and story.state.status is Status.CONCLUIDA
    replays(story)


def test_an_answer_that_is_refused_fails_its_ticket_for_good() -> None:
    story = Story(asked(plan([coleta("a", attempts=3)]), RESULT))
    story.confirm(0)
    story.ok(0)
    done = story.do(said(RESULT, (0, 1), refused=(0,)))
    assert kinds(done.events)[:2] == [PolicyEvaluated, TicketFailed]
    assert story.ticket(0).status is Status.ERRO and story.ticket(0).attempt == 1
    replays(story)


def test_a_failure_is_not_asked_about() -> None:
    story = Story(asked(plan(1), RESULT))
    story.confirm(0)
    assert kinds(story.fail(0).events)[:1] == [TicketFailed]


def test_a_verdict_on_an_earlier_answer_does_not_count_for_a_later_one() -> None:
    story = Story(asked(plan(2), RESULT))
    story.confirm()
    story.ok(0)
    story.do(said(RESULT, (0, 1), refused=(0,)))
    story.do(RequeueTicket(0, 1))
    story.confirm(0)
    story.ok(0)
    assert story.do(said(RESULT, (0, 1))).verdict is Verdict.IDLE
    assert story.do(said(RESULT, (0, 2))).verdict is Verdict.APPLIED
    replays(story)


@pytest.mark.parametrize("when", ["release", "answer"])
def test_cancelling_while_a_verdict_is_owed_owes_nothing_any_more(when: str) -> None:
    story = Story(asked(plan(1), TICKET, RESULT))
    if when == "answer":
        story.do(said(TICKET, (0, 0)))
        story.confirm(0)
        story.ok(0)
    story.do(Cancel("basta"))
    assert story.state.status is Status.CANCELADA and not owed(story.state) and story.state.finished
    assert story.do(said(TICKET, (0, 0))).verdict is Verdict.IDLE
    replays(story)


def test_a_verdict_during_a_pause_publishes_when_the_run_goes_on() -> None:
    story = Story(asked(plan(1), TICKET))
    story.do(PauseRun())
    assert not any(isinstance(one, Publish) for one in story.do(said(TICKET, (0, 0))).effects)
    assert Publish([(0, 1)]) in story.do(ResumeRun()).effects
    replays(story)


def test_what_policies_say_of_an_allocation_is_kept_and_changes_nothing() -> None:
    story = Story(asked(plan(1), ALLOCATION))
    before = story.ticket(0).phase
    done = story.do(said(ALLOCATION, (0, 1), refused=(0,)))
    assert kinds(done.events) == [PolicyEvaluated] and story.ticket(0).phase is before
    assert story.do(said(ALLOCATION, (0, 7))).verdict is Verdict.IDLE
    replays(story)


def named(tasks: dict[str, Any]) -> Story:
    """A run of named tasks whose expressions are evaluated at once."""
    made = requests.plan_of(requests.parse({"tarefas": tasks}), Defaults())
    story = Story(asked(made, TICKET))
    evaluate(story)
    return story


def evaluate(story: Story) -> None:
    for command in evaluate_inline(story.state):
        story.do(command)


def judge_all(story: Story) -> None:
    """Allow all that waits."""
    story.do(said(TICKET, *owed(story.state).items()))


def test_items_of_a_map_are_asked_about_and_keep_to_their_window() -> None:
    faz = {"executador": "resumo", "parametros": {"item": "${{ item }}"}}
    story = named({"m": {"para_cada": [1, 2, 3, 4, 5], "faz": faz, "ao_mesmo_tempo": 2}})
    assert owed(story.state) == {1: 0, 2: 0}
    story.do(said(TICKET, (1, 0), refused=(1,)))
    assert owed(story.state) == {2: 0, 3: 0}  # the one that was refused makes room for the next
    for _ in range(4):
        judge_all(story)
        for position in sorted(story.state.owed):
            story.confirm(position)
            story.ok(position)
        live = [p for p in range(1, 6) if story.ticket(p).phase not in (Phase.WAITING, Phase.CLOSED)]
        assert len(live) <= 2
    assert story.state.closed_at is not None
    assert [story.ticket(p).status for p in range(1, 6)] == [Status.ERRO, *[Status.CONCLUIDA] * 4]
    replays(story)


def test_every_round_of_a_loop_is_asked_about_those_behind_a_pause_too() -> None:
    faz = {"executador": "passo", "parametros": {}}
    repete = {"faz": faz, "pare_quando": "${{ r.resultado.n == 9 }}", "no_maximo": 3, "pausa_s": 5}
    story = named({"r": {"repete": repete}})
    assert owed(story.state) == {1: 0}
    judge_all(story)
    story.confirm(1)
    story.ok(1)
    evaluate(story)
    assert PolicyAsked(TICKET, [(2, 0)]) in story.wake(6).events
    judge_all(story)
    assert 2 in story.state.owed
    replays(story)
