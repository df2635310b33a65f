"""An attempt is taken back from its worker: another one goes out, none is used up, and good work still counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.given import Story, coleta, idle, names, plan
from oraculo.core.commands import PauseRun, ResumeRun, WithdrawTicket
from oraculo.core.effects import Publish
from oraculo.core.events import TicketWithdrawn
from oraculo.core.vocabulary import Cause, Phase, Status, Verdict
from oraculo.core.withdrawing import LAPSES_MAX, WITHDRAWALS_MAX

LOST = Cause.REALOCADO


def running(attempts: int = 1) -> Story:
    story = Story(plan([coleta(timeout=100, attempts=attempts), coleta("blog", timeout=100)]))
    story.confirm()
    return story


def test_the_next_attempt_is_owed_at_once() -> None:
    story = running()
    done = story.do(WithdrawTicket(0, 1, LOST, "w1", actor="key:ana"))
    assert done.events == [TicketWithdrawn(0, 1, LOST, "w1", None, "key:ana")]
    assert done.effects == [Publish([(0, 2)])]
    ticket = story.ticket(0)
    assert (ticket.status, ticket.phase, ticket.attempt, ticket.causes) == (Status.PENDENTE, Phase.OWED, 2, [LOST])


def test_after_a_wait_when_one_is_asked_for() -> None:
    story = running()
    done = story.do(WithdrawTicket(0, 1, LOST, "w1", timedelta(seconds=30)))
    assert done.effects == [] and story.ticket(0).phase is Phase.BACKOFF
    idle(story.wake(29), Verdict.IDLE)
    assert story.wake(30).effects == [Publish([(0, 2)])]


def test_none_of_its_attempts_is_used_up() -> None:
    story = running(attempts=2)
    story.do(WithdrawTicket(0, 1, LOST))
    assert names(story.fail(0)) == ["AttemptFailed"]
    story.wake(50)
    assert story.ticket(0).attempt == 3
    assert names(story.fail(0)) == ["TicketFailed"]


def test_a_good_answer_of_the_withdrawn_attempt_counts_once() -> None:
    story = running()
    story.do(WithdrawTicket(0, 1, LOST))
    assert names(story.ok(0, attempt=1)) == ["TicketConcluded"]
    assert story.ticket(0).status is Status.CONCLUIDA and not story.state.owed
    assert story.ok(0, attempt=2).verdict is Verdict.LATE
    assert story.ok(0, attempt=1).verdict is Verdict.DUPLICATE


def test_its_failure_does_not() -> None:
    story = running()
    story.do(WithdrawTicket(0, 1, LOST))
    assert story.fail(0, attempt=1).verdict is Verdict.LATE
    assert story.ticket(0).phase is Phase.OWED


def test_an_attempt_that_is_over_is_not_withdrawn() -> None:
    story = running()
    idle(story.do(WithdrawTicket(0, 2, LOST)), Verdict.IDLE)
    idle(story.do(WithdrawTicket(9, 1, LOST)), Verdict.UNKNOWN_TICKET)
    story.do(WithdrawTicket(0, 1, LOST))
    idle(story.do(WithdrawTicket(0, 1, LOST)), Verdict.IDLE)
    story.ok(0)
    idle(story.do(WithdrawTicket(0, 2, LOST)), Verdict.IDLE)


def test_an_order_that_ends_its_workers_does_not_go_round_for_ever() -> None:
    story = running()
    for attempt in range(1, WITHDRAWALS_MAX + 1):
        assert story.do(WithdrawTicket(0, attempt, LOST)).verdict is Verdict.APPLIED
    idle(story.do(WithdrawTicket(0, WITHDRAWALS_MAX + 1, LOST)), Verdict.IDLE)
    story.confirm()
    assert names(story.wake(100))[:2] == ["Woken", "TicketFailed"]


@pytest.mark.parametrize("wait", [None, timedelta(seconds=5)])
def test_while_paused_nothing_goes_out(wait: timedelta | None) -> None:
    story = running()
    story.do(PauseRun(), 10)
    assert story.do(WithdrawTicket(0, 1, LOST, "", wait), 11).effects == []
    sent = story.do(ResumeRun(), 60).effects
    assert sent == ([Publish([(0, 2)])] if wait is None else [])
    if wait is not None:
        assert story.wake(65).effects == [Publish([(0, 2)])]


def test_offers_that_nobody_took_have_a_bound_of_their_own() -> None:
    story = running()
    for attempt in range(1, LAPSES_MAX + 1):
        story.do(WithdrawTicket(0, attempt, Cause.OFERTA_VENCIDA, "w1"))
    idle(story.do(WithdrawTicket(0, LAPSES_MAX + 1, Cause.OFERTA_VENCIDA, "w1")), Verdict.IDLE)
    for attempt in range(LAPSES_MAX + 1, LAPSES_MAX + 1 + WITHDRAWALS_MAX):
        assert names(story.do(WithdrawTicket(0, attempt, LOST, "w1"))) == ["TicketWithdrawn"]
    idle(story.do(WithdrawTicket(0, LAPSES_MAX + 1 + WITHDRAWALS_MAX, LOST, "w1")), Verdict.IDLE)
    assert story.ticket(0).used == 1
