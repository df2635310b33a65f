"""The state follows from the events alone, and knows when to look at it again."""

from __future__ import annotations

import copy

import pytest

from core.given import Story, at, coleta, plan
from oraculo.core.events import Woken
from oraculo.core.notice_state import NoticePhase
from oraculo.core.state import fold
from oraculo.core.vocabulary import FanIn, Kind, Phase, Status


class TestFold:
    def test_an_empty_journal_has_no_state(self) -> None:
        with pytest.raises(ValueError, match="empty journal"):
            fold([])

    def test_a_journal_begins_with_its_start(self) -> None:
        with pytest.raises(ValueError, match="begins with OrchestrationStarted, not with Woken"):
            fold([(at(0), [Woken()])])

    def test_half_a_journal_then_the_other_half(self) -> None:
        story = Story(plan(3, 1, attempts=2))
        story.confirm()
        story.fail(0)
        story.ok(1)
        story.wake(30)
        story.wake(40)
        for cut in range(1, len(story.journal)):
            half = fold(copy.deepcopy(story.journal[:cut]))
            assert fold(copy.deepcopy(story.journal[cut:]), half) == story.state

    def test_a_folded_state_goes_on_exactly_like_the_live_one(self) -> None:
        """The indexes that are not facts (timers, names) are rebuilt too."""
        story = Story(plan(2, 1, attempts=3))
        story.confirm(when=1)
        story.fail(0, when=2)
        twin = Story(plan(2, 1, attempts=3))
        twin.journal = copy.deepcopy(story.journal)
        twin.state = fold(copy.deepcopy(story.journal))
        twin._answers = story._answers
        assert twin.state.wake_at() == story.state.wake_at()
        for one in (story, twin):
            one.wake(3)
            one.wake(31)
            one.do(one.bare(Kind.COLETA, "fonte1"), 31.5)
            one.wake(120)
        assert twin.events == story.events
        assert twin.state == story.state


class TestWakeAt:
    def test_without_anything_running_it_is_the_deadline(self) -> None:
        assert Story(plan(1, timeout=77)).state.wake_at() == at(77)

    def test_it_is_the_nearest_of_timeouts_retries_and_the_deadline(self) -> None:
        story = Story(plan([coleta(timeout=30), coleta("blog", timeout=10)], timeout=600))
        story.confirm(0)
        assert story.state.wake_at() == at(30)
        story.confirm(1)
        assert story.state.wake_at() == at(10)
        story.ok(1)
        assert story.state.wake_at() == at(30)
        story.ok(0)
        assert story.state.wake_at() is None

    def test_a_timeout_after_the_deadline_is_not_waited_for(self) -> None:
        story = Story(plan([coleta(timeout=30)], timeout=20))
        story.confirm()
        assert story.state.wake_at() == at(20)

    def test_waking_at_wake_at_always_does_something(self) -> None:
        story = Story(plan(3, 1, attempts=3, timeout=200))
        story.confirm()
        for _ in range(50):
            wake = story.state.wake_at()
            if wake is None:
                break
            assert story.wake((wake - at(0)).total_seconds()).events
            if story.state.owed:
                story.confirm()
        assert story.status is Status.ERRO


class TestOwes:
    def test_messages_are_owed_until_they_are_confirmed_or_pointless(self) -> None:
        story = Story(plan(3, 1, modo=FanIn.QUORUM, minimo=1))
        assert story.state.owed == {0, 1, 2} and story.state.owes == 3
        story.confirm(0)
        assert story.state.owes == 2
        story.ok(1)
        assert story.state.owed == {3}
        story.cancel()
        assert story.state.owes == 0

    def test_notices_are_owed_from_the_end_until_delivered(self) -> None:
        story = Story(plan(1, webhook="https://example.com", fila="avisos"))
        assert [n.phase for n in story.state.notices] == [NoticePhase.BACKOFF] * 2
        assert story.state.owes == 1
        story.ok(0)
        assert story.state.owes == 2
        story.told(1, 1, delivered=True)
        assert story.state.owes == 1


class TestTimes:
    def test_of_a_ticket_that_is_tried_twice(self) -> None:
        story = Story(plan(1, attempts=2))
        story.confirm(when=1)
        story.fail(0, when=2)
        assert story.ticket(0).started_at == at(1)
        story.wake(4)
        assert (story.ticket(0).dispatched_at, story.ticket(0).started_at) == (at(0), None)
        story.confirm(when=5)
        story.ok(0, when=6)
        ticket = story.ticket(0)
        assert (ticket.dispatched_at, ticket.started_at, ticket.closed_at) == (at(0), at(5), at(6))
        assert story.state.closed_at == at(6)

    def test_an_orchestration_is_em_execucao_from_the_first_sign_of_life(self) -> None:
        confirmed, answered = Story(plan(2)), Story(plan(2))
        assert confirmed.status is Status.PENDENTE
        confirmed.confirm(0)
        answered.ok(0)
        assert (confirmed.status, answered.status) == (Status.EM_EXECUCAO, Status.EM_EXECUCAO)


def test_open_named_answers_for_open_tickets_only() -> None:
    story = Story(plan([coleta("a"), coleta("b"), coleta("a")]))
    assert story.state.open_named(Kind.COLETA, "a") == [0, 2]
    story.ok(0)
    assert story.state.open_named(Kind.COLETA, "a") == [2]
    assert story.state.open_named(Kind.EXECUCAO, "a") == []
    assert story.ticket(2).phase is Phase.OWED


class TestWhatIsStillToBeDone:
    def test_an_order_is_owed_until_a_broker_confirms_it(self) -> None:
        story = Story(plan(1, attempts=2))
        assert story.state is not None
        assert story.state.owes_order(0, 1)
        assert not story.state.owes_order(0, 2)
        assert not story.state.owes_order(7, 1)
        story.confirm()
        assert not story.state.owes_order(0, 1)

    def test_an_older_state_does_not_call_settled_what_it_has_not_heard_of(self) -> None:
        story = Story(plan(1, attempts=2))
        story.confirm()
        assert story.state is not None
        assert [story.state.may_owe_order(*one) for one in ((0, 1), (0, 2), (5, 1))] == [False, True, True]

    def test_an_answer_is_wanted_while_its_attempt_is_out(self) -> None:
        story = Story(plan(1, attempts=2))
        assert story.state is not None
        assert story.state.wants_answer(0, 1)
        story.confirm()
        assert story.state.wants_answer(0, 1)
        story.fail(0, when=1)
        assert [story.state.wants_answer(0, attempt) for attempt in (1, 2)] == [False, False]
        story.wake(5)
        assert [story.state.wants_answer(0, attempt) for attempt in (1, 2)] == [False, True]

    def test_it_is_finished_when_its_notices_are_settled_too(self) -> None:
        story = Story(plan(1, fila="avisos"))
        assert story.state is not None
        story.ok(0, when=1)
        assert (story.status.final, story.state.finished) == (True, False)
        assert story.state.owes_notice(0, 1)
        assert not story.state.owes_notice(0, 2)
        story.told(0, 1)
        assert not story.state.finished
        story.wake(10)
        story.told(0, 2, delivered=True)
        assert story.state.finished


class TestRoom:
    """What runs have in common, and what most of them never have, is kept once."""

    def test_tickets_that_are_confirmed_together_have_one_instant(self) -> None:
        story = Story(plan(3, 1))
        story.confirm(when=1)
        dues = [ticket.due_at for ticket in story.state.tickets[:3]]
        assert dues[0] is not None
        assert all(due is dues[0] for due in dues)

    def test_tickets_with_different_timeouts_have_instants_of_their_own(self) -> None:
        tasks = [coleta("a", timeout=10), coleta("b", timeout=20), coleta("c", timeout=10)]
        story = Story(plan(tasks))
        story.confirm(when=1)
        assert [ticket.due_at for ticket in story.state.tickets] == [at(11), at(21), at(11)]

    def test_runs_that_undo_nothing_share_that(self) -> None:
        first, second = Story(plan(1)), Story(plan(1))
        assert first.state.undone is second.state.undone
        assert not first.state.undone
