"""Pauses of an orchestration: nothing goes out, deadlines stand still, and all of it goes on afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from core.given import Story, at, plan
from core.test_waits import WaitStory, run_task
from oraculo.core import events as ev
from oraculo.core.commands import Cancel, ConfirmDispatch, PauseRun, ResumeRun, Wake
from oraculo.core.effects import Publish, Recall, owed_effects
from oraculo.core.plan import Backoff
from oraculo.core.vocabulary import Phase, Status, Verdict
from oraculo.wire import records, views

PAUSE, RESUME = PauseRun("a fonte está fora", "ana"), ResumeRun("voltou", "ana")


def sent(done: Any) -> list[tuple[int, int]]:
    return [one for effect in done.effects if isinstance(effect, Publish) for one in effect.tickets]


def test_what_becomes_possible_during_a_pause_goes_out_after_it_and_once() -> None:
    story = Story(plan(2, 1))
    story.do(ConfirmDispatch([(0, 1), (1, 1)]), 1)
    paused = story.do(PAUSE, 2)
    assert (paused.verdict, paused.effects) == (Verdict.APPLIED, [Recall()])
    assert not story.ok(0, when=3).effects
    during = story.ok(1, when=4)
    assert any(isinstance(event, ev.TicketsDispatched) for event in during.events)
    assert not sent(during) and story.state.owes == 0
    assert owed_effects(story.state) == [Recall()]
    assert sent(story.do(RESUME, 50)) == [(2, 1)]
    assert story.ticket(2).phase is Phase.OWED


def test_asking_again_changes_nothing_and_what_has_ended_is_not_paused() -> None:
    story = Story(plan(1))
    assert story.do(RESUME, 1).verdict is Verdict.DUPLICATE
    assert story.do(PAUSE, 1).verdict is Verdict.APPLIED
    again = story.do(PAUSE, 2)
    assert (again.verdict, again.events) == (Verdict.DUPLICATE, [])
    story.do(Cancel("chega"), 3)
    assert story.state.paused is None
    for command in (PAUSE, RESUME):
        assert story.do(command, 4).verdict is Verdict.IDLE


def test_every_deadline_moves_by_exactly_the_pause() -> None:
    story = Story(plan(3, timeout=100, attempts=2, backoff=Backoff(timedelta(seconds=8), timedelta(seconds=8))))
    story.do(ConfirmDispatch([(0, 1), (1, 1)]), 1)
    story.fail(1, when=2)
    story.do(PAUSE, 10)
    before = (story.state.deadline, story.ticket(0).due_at, story.ticket(1).due_at)
    assert story.state.wake_at() is None
    assert story.do(Wake(), 5000).verdict is Verdict.IDLE
    story.do(ConfirmDispatch([(2, 1)]), 5001)  # it was on its way; its time begins when the pause ends
    story.do(RESUME, 6010)
    pause = timedelta(seconds=6000)
    assert (story.state.deadline, story.ticket(0).due_at, story.ticket(1).due_at) == tuple(
        None if one is None else one + pause for one in before
    )
    assert story.ticket(2).due_at == at(6010) + story.state.plan.tasks[2].timeout
    assert story.state.wake_at() == story.ticket(1).due_at


def test_an_answer_that_fails_during_a_pause_is_tried_again_after_it() -> None:
    story = Story(plan(1, attempts=2, backoff=Backoff(timedelta(seconds=8), timedelta(seconds=8))))
    story.do(ConfirmDispatch([(0, 1)]), 1)
    story.do(PAUSE, 2)
    story.fail(0, when=100)
    wait = story.ticket(0).due_at - at(2)
    assert story.do(Wake(), 500).verdict is Verdict.IDLE
    story.do(RESUME, 1000)
    assert story.ticket(0).due_at == at(1000) + wait
    assert sent(story.do(Wake(), 1010)) == [(0, 2)]


def test_seconds_stand_still_and_an_instant_does_not_move() -> None:
    tasks = {
        "curta": {"espera": {"segundos": 30}},
        "hora": {"espera": {"ate": at(60).isoformat()}},
        "depois": run_task("hora"),
    }
    story = WaitStory(tasks)
    story.do(PAUSE, 10)
    assert story.state.wake_at() == at(60)
    done = story.do(Wake(), 60)
    story.evaluate()
    assert (story.of("hora").status, story.of("curta").status) == (Status.CONCLUIDA, Status.EM_EXECUCAO)
    assert not sent(done)
    assert (2, 1) in sent(story.do(RESUME, 100))
    assert story.of("curta").due_at == at(120)
    story.do(Wake(), 119)
    assert story.of("curta").status is Status.EM_EXECUCAO
    story.do(Wake(), 120)
    assert story.of("curta").status is Status.CONCLUIDA


def test_who_paused_it_since_when_and_why_is_shown() -> None:
    story = Story(plan(1))
    story.do(PAUSE, 5)
    shown = views.orchestration(story.state)
    assert (shown["pausada"], shown["pausa"]) == (True, {"ator": "ana", "desde": at(5), "motivo": PAUSE.reason})
    assert shown["espera"] == "pausada por ana desde 2025-10-14T12:00:05Z porque a fonte está fora"
    assert views.waiting_for(story.state, "en") == "paused by ana since 2025-10-14T12:00:05Z because a fonte está fora"
    story.do(RESUME, 6)
    shown = views.orchestration(story.state)
    assert (shown["pausada"], shown["pausa"]) == (False, None)


def test_the_events_survive_the_journal() -> None:
    made: list[ev.Event] = [ev.OrchestrationPaused("x", "ana"), ev.OrchestrationResumed("y", None)]
    assert records.decode(records.encode(made)) == made
