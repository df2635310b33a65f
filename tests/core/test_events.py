"""Events and commands: every command has a mirror, and the journal's list of event types is complete."""

from __future__ import annotations

from typing import get_args

import pytest

from core.given import Story, plan
from oraculo.core import commands, events
from oraculo.core.allocations import Allocation, AllocationMethod, Candidate
from oraculo.core.commands import AllocateTicket, Command, RequeueTicket, WithdrawTicket
from oraculo.core.events import Event
from oraculo.core.step import Step
from oraculo.core.vocabulary import Cause


def started() -> Step:
    return Story(plan(1)).started


def confirmed() -> Step:
    return Story(plan(1)).confirm()


def concluded() -> Step:
    return Story(plan(1)).ok(0)


def retried() -> Step:
    return Story(plan(1, attempts=2)).fail(0)


def failed() -> Step:
    return Story(plan(1)).fail(0)


def requeued() -> Step:
    story = Story(plan(2))
    story.fail(0)
    return story.do(RequeueTicket(0, 1))


def withdrawn() -> Step:
    return Story(plan(1)).do(WithdrawTicket(0, 1, Cause.REALOCADO, "w1"))


def allocated() -> Step:
    chosen = Candidate("w1", 0.9, 1.0, 0.9, 0.5, 1.0)
    return Story(plan(1)).do(AllocateTicket(0, 1, Allocation("w1", AllocationMethod.ONLY, 0.5, 0.9, (chosen,))))


def late() -> Step:
    story = Story(plan(1))
    story.cancel()
    return story.ok(0)


def conflicting() -> Step:
    story = Story(plan(1))
    story.ok(0)
    return story.ok(0, b'"other"')


def woken() -> Step:
    return Story(plan(1)).wake(1e6)


def cancelled() -> Step:
    return Story(plan(1)).cancel()


def notice(**how: bool) -> Step:
    story = Story(plan(1, fila="avisos"))
    story.ok(0)
    return story.told(0, 1, **how)


MIRRORS = {
    "OrchestrationStarted": started,
    "DispatchConfirmed": confirmed,
    "TicketConcluded": concluded,
    "AttemptFailed": retried,
    "TicketFailed": failed,
    "TicketRequeued": requeued,
    "TicketWithdrawn": withdrawn,
    "TicketAllocated": allocated,
    "LateAnswerKept": late,
    "ConflictingAnswerKept": conflicting,
    "Woken": woken,
    "CancelRequested": cancelled,
    "NoticeDelivered": lambda: notice(delivered=True),
    "NoticeFailed": lambda: notice(delivered=False),
    "NoticeGivenUp": lambda: notice(final=True),
}


@pytest.mark.parametrize("first", MIRRORS)
def test_the_first_event_of_a_step_mirrors_its_command(first: str) -> None:
    assert type(MIRRORS[first]().events[0]).__name__ == first


def test_the_unions_name_every_class() -> None:
    for module, union in ((events, Event), (commands, Command)):
        defined = {
            value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
        }
        assert set(get_args(union)) == defined
