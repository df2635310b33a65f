"""Who asked for something is in the mirror of what was asked for, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from core.given import Story, at, coleta, plan
from oraculo.core import events as ev
from oraculo.core.commands import Approve, Cancel, RecordResult, Start
from oraculo.core.replay import cause_of, rebuild
from oraculo.core.state import Orchestration
from oraculo.core.step import Step, step
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.journal import Recorded
from oraculo.wire import event_views, records, views

RUN = 7 << 20
WANTED = plan([coleta("youtube", attempts=2)])


def started(actor: str | None = "ana") -> Step:
    return step(None, Start(RUN, "abc", WANTED, "f", None, actor), at(0))


def answer(ok: bool, actor: str | None = "kworker", **more: object) -> RecordResult:
    return RecordResult(ok, b"1", [], ticket=ticket_id(RUN, 0), actor=actor, **more)


def answered(command: RecordResult) -> tuple[Orchestration, Step]:
    state = started().state
    return state, step(state, command, at(1))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (started, ev.OrchestrationStarted),
        (lambda: answered(answer(True))[1], ev.TicketConcluded),
        (lambda: answered(answer(False))[1], ev.AttemptFailed),
        (lambda: answered(answer(False, definitivo=True))[1], ev.TicketFailed),
        (lambda: step(started().state, Cancel("chega", "ana"), at(1)), ev.CancelRequested),
    ],
)
def test_the_mirror_names_the_actor(make: object, kind: type) -> None:
    done: Step = make()
    first, *rest = done.events
    assert isinstance(first, kind)
    assert ev.actor_of(first) in ("ana", "kworker")
    assert {ev.actor_of(event) for event in rest} <= {None}
    cause = cause_of(done.events)
    assert cause.actor == ev.actor_of(first)
    assert records.decode(records.encode(done.events)) == done.events
    shown = next(event_views.events(RUN, WANTED, Recorded(RUN, done.first, done.at, done.events)))
    assert shown["ator"] == ev.actor_of(first)


def test_a_late_answer_names_the_actor() -> None:
    state, _ = answered(answer(False, attempt=1))
    [late, *_] = step(state, answer(True, attempt=1), at(2)).events or [None]
    assert late is None  # that attempt was answered
    story = Story(plan([coleta("youtube", attempts=1)]))
    story.cancel("chega")
    done = step(story.state, RecordResult(True, b"1", [], ticket=ticket_id(story.run, 0), actor="kworker"), at(9))
    assert isinstance(done.events[0], ev.LateAnswerKept) and done.events[0].actor == "kworker"


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_names_the_actor_beside_the_name_that_was_given(approved: bool) -> None:
    state = step(None, Start(RUN, "abc", replace(WANTED, approval=True), "f"), at(0)).state
    done = step(state, Approve(approved, "ceo", "visto", "kapprover"), at(1))
    first = done.events[0]
    assert isinstance(first, ev.ApprovalGiven | ev.ApprovalRefused)
    assert (first.by, first.actor) == ("ceo", "kapprover")
    assert cause_of(done.events) == Approve(approved, "ceo", "visto", "kapprover")


def test_a_state_knows_who_asked_for_it() -> None:
    done = started()
    assert done.state.actor == "ana"
    assert rebuild([Recorded(RUN, 1, done.at, done.events)]).actor == "ana"
    assert views.orchestration(done.state)["ator"] == "ana"
    assert "ator" not in views.orchestration(started(None).state)


def test_a_journal_from_before_names_nobody() -> None:
    done = started()
    values = orjson.loads(records.encode(done.events))
    for _, fields in values:
        fields.pop("actor", None)
    [first, *_] = records.decode(orjson.dumps(values))
    assert isinstance(first, ev.OrchestrationStarted) and first.actor is None
    assert "ator" not in next(event_views.events(RUN, WANTED, Recorded(RUN, 1, done.at, [first])))


def test_a_deadline_is_nobody() -> None:
    story = Story(plan([coleta("youtube", attempts=1, timeout=5)]))
    story.confirm()
    done = story.wake(when=100)
    assert {ev.actor_of(event) for event in done.events} == {None}
