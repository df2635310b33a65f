"""Notices are tried on a schedule, then given up in sight of everyone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.given import Story, at, idle, names, plan
from oraculo.core.events import NoticeDelivered, NoticeFailed, NoticeGivenUp
from oraculo.core.notice_state import NoticePhase
from oraculo.core.plan import NOTICE_WAITS
from oraculo.core.vocabulary import Status, Verdict


def ended(**targets: str) -> Story:
    story = Story(plan(1, **(targets or {"webhook": "https://example.com"})))
    story.ok(0)
    return story


def due(story: Story) -> float:
    return (story.state.wake_at() - at(0)).total_seconds()


def test_no_notice_without_a_target() -> None:
    story = Story(plan(1))
    assert names(story.ok(0))[-1] == "OrchestrationClosed" and story.notified == []


@pytest.mark.parametrize("how", ["concluida", "erro", "timeout", "cancelada"])
def test_every_ending_is_told(how: str) -> None:
    story = Story(plan(1, webhook="https://example.com", timeout=60))
    {
        "concluida": lambda: story.ok(0),
        "erro": lambda: story.fail(0),
        "timeout": lambda: story.wake(60),
        "cancelada": story.cancel,
    }[how]()
    assert (story.status.value, story.notified) == (how, [(0, 1)])


def test_delivered_is_the_end_of_it() -> None:
    story = ended()
    done = story.told(0, 1, delivered=True, detail="200")
    assert done.events == [NoticeDelivered(0, 1, "200")]
    assert story.state.wake_at() is None and story.state.owes == 0
    idle(story.told(0, 1, delivered=True), Verdict.IDLE)


def test_the_whole_schedule_with_a_little_jitter_then_given_up() -> None:
    story = ended()
    for attempt, wait in enumerate(NOTICE_WAITS, 1):
        start = story.now
        done = story.told(0, attempt, detail="503", when=start)
        assert isinstance(done.events[0], NoticeFailed)
        pause = done.events[0].retry_at - at(start)
        assert wait <= pause <= wait * 1.1
        idle(story.wake(due(story) - 0.001), Verdict.IDLE)
        story.wake(due(story))
        assert story.notified[-1] == (0, attempt + 1)
    last = story.told(0, len(NOTICE_WAITS) + 1, detail="503")
    assert last.events == [NoticeGivenUp(0, len(NOTICE_WAITS) + 1, "503", False, None)]
    assert story.state.notices[0].phase is NoticePhase.GIVEN_UP
    assert story.state.wake_at() is None
    assert story.status is Status.CONCLUIDA


def test_a_final_refusal_is_not_tried_again() -> None:
    story = ended()
    assert isinstance(story.told(0, 1, final=True, detail="410").events[0], NoticeGivenUp)
    assert story.state.wake_at() is None


def test_the_receiver_may_ask_for_a_longer_wait_but_not_for_a_shorter_one() -> None:
    patient, hasty = ended(), ended()
    patient.told(0, 1, retry_after=timedelta(hours=1))
    hasty.told(0, 1, retry_after=timedelta(seconds=0.1))
    assert due(patient) == 3600
    assert 5 <= due(hasty) <= 5.5


def test_two_targets_have_schedules_of_their_own() -> None:
    story = ended(webhook="https://example.com", fila="avisos")
    story.told(0, 1)
    story.told(1, 1, delivered=True)
    story.wake(due(story))
    assert story.notified == [(0, 1), (1, 1), (0, 2)]


@pytest.mark.parametrize(("notice", "attempt"), [(0, 2), (0, 0), (1, 1), (-1, 1)])
def test_reports_that_fit_nothing_are_idle(notice: int, attempt: int) -> None:
    idle(ended().told(notice, attempt, delivered=True), Verdict.IDLE)


def test_reports_before_the_end_are_idle() -> None:
    story = Story(plan(1, webhook="https://example.com"))
    idle(story.told(0, 0, delivered=True), Verdict.IDLE)


def test_a_report_of_an_earlier_try_is_idle() -> None:
    story = ended()
    story.told(0, 1)
    idle(story.told(0, 1), Verdict.IDLE)
    story.wake(due(story))
    idle(story.told(0, 1, delivered=True), Verdict.IDLE)
    assert story.told(0, 2, delivered=True).verdict is Verdict.APPLIED


def test_a_late_answer_while_the_notice_waits_does_not_disturb_it() -> None:
    story = Story(plan(2, webhook="https://example.com"))
    story.confirm()
    story.ok(0)
    story.wake(30)
    assert story.notified == [(0, 1)]
    story.ok(1)
    assert story.told(0, 1, delivered=True).verdict is Verdict.APPLIED
