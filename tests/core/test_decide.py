"""What each command causes by itself, and that what is stale causes nothing."""

from __future__ import annotations

import pytest

from core.given import RUN, Story, at, coleta, idle, names, plan
from oraculo.core.commands import ConfirmDispatch, Start
from oraculo.core.events import DispatchConfirmed, TicketsDispatched, Woken
from oraculo.core.vocabulary import Phase, Status, Verdict


class TestConfirmDispatch:
    def test_it_moves_a_ticket_to_em_execucao_and_starts_its_clock(self) -> None:
        story = Story(plan([coleta(timeout=30), coleta("blog")]))
        done = story.confirm(0, when=4)
        assert done.events == [DispatchConfirmed([(0, 1)])]
        assert (story.ticket(0).status, story.ticket(0).phase) == (Status.EM_EXECUCAO, Phase.RUNNING)
        assert (story.ticket(0).started_at, story.ticket(0).due_at) == (at(4), at(34))
        assert story.ticket(1).status is Status.PENDENTE
        assert story.status is Status.EM_EXECUCAO

    def test_a_second_confirmation_is_idle_and_moves_no_deadline(self) -> None:
        story = Story(plan(1))
        story.confirm(0, when=1)
        idle(story.confirm(0, when=20), Verdict.IDLE)
        assert story.ticket(0).due_at == at(31)

    def test_the_same_ticket_twice_in_one_confirmation_counts_once(self) -> None:
        story = Story(plan([coleta(attempts=2)]))
        done = story.do(ConfirmDispatch([(0, 1), (0, 1)]))
        assert done.events == [DispatchConfirmed([(0, 1)])]
        assert names(story.wake(30)) == ["Woken", "AttemptFailed"]

    def test_a_confirmation_of_an_earlier_attempt_is_idle(self) -> None:
        story = Story(plan(1, attempts=2))
        story.fail(0)
        story.wake(2)
        idle(story.do(ConfirmDispatch([(0, 1)])), Verdict.IDLE)
        assert story.do(ConfirmDispatch([(0, 2)])).verdict is Verdict.APPLIED

    def test_only_those_still_owed_count(self) -> None:
        story = Story(plan(3))
        story.ok(1)
        assert story.confirm(0, 1, 2).events == [DispatchConfirmed([(0, 1), (2, 1)])]

    def test_after_the_end_it_is_idle(self) -> None:
        story = Story(plan(1))
        story.cancel()
        idle(story.confirm(0), Verdict.IDLE)


class TestWake:
    def test_too_early_is_idle(self) -> None:
        story = Story(plan([coleta(timeout=30, attempts=1)]))
        story.confirm(when=5)
        idle(story.wake(34.999999), Verdict.IDLE)
        assert names(story.wake(35))[:2] == ["Woken", "TicketFailed"]

    def test_a_ticket_whose_message_no_broker_confirmed_does_not_time_out(self) -> None:
        story = Story(plan([coleta(timeout=1)], timeout=600))
        idle(story.wake(599), Verdict.IDLE)

    def test_a_stale_timer_of_an_answered_attempt_is_idle(self) -> None:
        story = Story(plan(2))
        story.confirm()
        story.ok(0)
        story.ok(1)
        idle(story.wake(100), Verdict.IDLE)

    def test_a_stale_timer_does_not_cut_the_next_attempt_short(self) -> None:
        story = Story(plan([coleta(timeout=30, attempts=3)]))
        story.confirm(when=0)
        story.fail(0, when=1)
        story.wake(3)
        story.confirm(when=10)
        idle(story.wake(30), Verdict.IDLE)
        idle(story.wake(39.9), Verdict.IDLE)
        assert names(story.wake(40)) == ["Woken", "AttemptFailed"]

    def test_backoff_ends_in_another_dispatch_and_not_before(self) -> None:
        story = Story(plan(1, attempts=2))
        story.fail(0)
        due = (story.ticket(0).due_at - at(0)).total_seconds()
        idle(story.wake(due - 0.000001), Verdict.IDLE)
        done = story.wake(due)
        assert done.events == [Woken(), TicketsDispatched([0], 2)]
        idle(story.wake(due), Verdict.IDLE)

    def test_many_that_are_due_are_one_step_with_one_dispatch_per_attempt(self) -> None:
        story = Story(plan(4, attempts=5))
        for position in range(4):
            story.fail(position, when=0)
        story.wake(1)  # the second attempts of all
        for position in (0, 1):
            story.fail(position, when=1)
        story.wake(10)  # the third of two
        for position in range(4):
            story.fail(position, when=10)
        assert story.wake(100).events == [Woken(), TicketsDispatched([3, 2], 3), TicketsDispatched([1, 0], 4)]

    def test_the_same_timer_armed_twice_for_the_same_instant_fires_once(self) -> None:
        story = Story(plan(3))
        story.confirm()
        story.ok(2)
        story.state.arm(0, at(30))
        story.state.arm(1, at(30))
        assert names(story.wake(30)).count("TicketFailed") == 2
        assert (story.state.open, story.status) == (0, Status.PARCIAL)

    @pytest.mark.parametrize("ending", ["ok", "cancel"])
    def test_after_the_end_it_is_idle(self, ending: str) -> None:
        story = Story(plan(1))
        story.confirm()
        story.ok(0) if ending == "ok" else story.cancel()
        idle(story.wake(100_000), Verdict.IDLE)


def test_start_of_an_orchestration_that_exists_is_a_duplicate() -> None:
    story = Story(plan(1))
    idle(story.do(Start(RUN, "abc123", plan(5))), Verdict.DUPLICATE)


def test_cancel_after_the_end_is_idle() -> None:
    story = Story(plan(1))
    story.ok(0)
    idle(story.cancel("tarde"), Verdict.IDLE)
