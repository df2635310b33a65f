"""A ticket whose attempts are used up gets another one, as long as its failure has had no consequence."""

from __future__ import annotations

import pytest

from core.given import Story, coleta, dag, execucao, flow, idle, names, plan
from oraculo.core.commands import RequeueTicket
from oraculo.core.effects import Publish
from oraculo.core.events import TicketRequeued
from oraculo.core.vocabulary import FanIn, Phase, Status, Verdict


def exhausted() -> Story:
    """Two collections, one of which used up its only attempt; the other one runs."""
    story = Story(plan(2, 1))
    story.confirm()
    story.fail(0)
    return story


def test_it_becomes_a_further_attempt() -> None:
    story = exhausted()
    done = story.do(RequeueTicket(0, 1, "key:ana"))
    assert done.events == [TicketRequeued(0, 2, "key:ana")]
    assert done.effects == [Publish([(0, 2)])]
    ticket = story.ticket(0)
    assert (ticket.status, ticket.phase, ticket.attempt, ticket.closed_at) == (Status.PENDENTE, Phase.OWED, 2, None)
    assert story.state.open == 3


def test_its_answer_counts_like_any_other() -> None:
    story = exhausted()
    story.do(RequeueTicket(0, 1))
    story.ok(1)
    assert names(story.ok(0)) == ["TicketConcluded", "FanInClosed", "TicketsDispatched"]
    story.ok(2)
    assert story.state.status is Status.CONCLUIDA


def test_failed_again_it_ends_again() -> None:
    story = exhausted()
    story.do(RequeueTicket(0, 1))
    assert names(story.fail(0)) == ["TicketFailed"]
    assert names(story.do(RequeueTicket(0, 2))) == ["TicketRequeued"]
    story.ok(0)
    story.ok(1)
    assert story.ticket(0).attempt == 3


def test_a_late_answer_to_the_attempt_before_stays_late() -> None:
    story = Story(plan([coleta(timeout=5, attempts=1), coleta("blog", timeout=100)]))
    story.confirm()
    story.wake(5)
    assert story.ticket(0).status is Status.TIMEOUT
    story.do(RequeueTicket(0, 1))
    assert story.ok(0, attempt=1).verdict is Verdict.LATE
    assert story.ok(0, attempt=2).verdict is Verdict.APPLIED


def test_asked_twice_for_the_same_letter_it_is_a_duplicate() -> None:
    story = exhausted()
    story.do(RequeueTicket(0, 1))
    idle(story.do(RequeueTicket(0, 1)), Verdict.DUPLICATE)
    story.fail(0)
    idle(story.do(RequeueTicket(0, 1)), Verdict.DUPLICATE)


@pytest.mark.parametrize("position", [-1, 3, 10**6])
def test_a_ticket_that_is_not_there(position: int) -> None:
    idle(exhausted().do(RequeueTicket(position, 1)), Verdict.UNKNOWN_TICKET)


def test_what_has_ended_stays_ended() -> None:
    story = Story(plan(1))
    story.fail(0)
    assert story.state.status is Status.ERRO
    idle(story.do(RequeueTicket(0, 1)), Verdict.RUN_ENDED)


def test_what_a_fan_in_has_counted_stays() -> None:
    """The executions began with what was there."""
    story = exhausted()
    story.ok(1)
    idle(story.do(RequeueTicket(0, 1)), Verdict.ALREADY_DECIDED)
    unmet = Story(dag({"a": [], "b": [], "c": ["a", "b"]}))
    unmet.fail(0)
    idle(unmet.do(RequeueTicket(0, 1)), Verdict.ALREADY_DECIDED)


def test_what_is_undone_stays() -> None:
    story = Story(flow({"a": [], "b": []}))
    story.ok(0)
    story.fail(1)
    assert story.state.undoes
    idle(story.do(RequeueTicket(1, 1)), Verdict.ALREADY_DECIDED)


def test_a_ticket_that_did_not_fail() -> None:
    story = Story(plan([coleta("a"), coleta("b"), coleta("c")], [execucao()], modo=FanIn.QUORUM, minimo=2))
    story.ok(0)
    idle(story.do(RequeueTicket(0, 1)), Verdict.ALREADY_DECIDED)
    idle(story.do(RequeueTicket(1, 1)), Verdict.DUPLICATE)
