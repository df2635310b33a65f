"""The check of a journal holds nothing against what the core does right when the run was paused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from core.given import Story
from core.test_loops import FIRST, loop_story
from oraculo.core import events as ev
from oraculo.core.commands import PauseRun, ResumeRun
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Status
from oraculo.ports.journal import Recorded
from oraculo.simulation import task_rules
from oraculo.simulation.facts import Answer
from oraculo.simulation.invariants import CheckedJournal
from oraculo.wire import payloads, strict_json
from runtime.test_evaluation import started

ROUND = 1


class Told:
    """What a journal may ask: every answer of the story was given, every order was confirmed, workers may hang."""

    def __init__(self, story: Story) -> None:
        given = [event for event in story.events if isinstance(event, ev.TicketConcluded)]
        self._answers = {
            one.digest: Answer(ticket_id(story.run, one.ticket), one.attempt, True, False, orjson.loads(one.dados))
            for one in given
        }

    def answer(self, digest: int) -> Answer | None:
        return self._answers.get(digest)

    def confirmed(self, message_id: str) -> bool:
        return True

    def honest_timeouts(self) -> bool:
        return False


def checked(story: Story) -> CheckedJournal:
    """The journal of a story after the check has read it; a violation fails the test."""

    def violate(rule: str, text: str) -> None:
        pytest.fail(f"{rule}: {text}")

    journal, first = CheckedJournal(Told(story), violate), 1
    for at, events in story.journal:
        journal.read(Recorded(story.run, first, at, events))
        first += len(events)
    return journal


def paused(story: Any, since: float, until: float) -> None:
    story.do(PauseRun("espera"), since)
    story.do(ResumeRun("segue"), until)


@pytest.mark.parametrize("pause", [0.5, 20])
@pytest.mark.parametrize(("condition", "status"), [("${{ 1 > 2 }}", "ignorada"), ("${{ q.resultado.x }}", "erro")])
def test_what_closed_without_work_after_a_task_began_is_pending_to_it(
    condition: str, status: str, pause: float
) -> None:
    story = started(
        {
            "q": {"executador": "q"},
            "b": {"executador": "b", "depende": ["q"], "quando": condition},
            "c": {"executador": "c"},
            "d": {"executador": "d", "depende": ["b", "c"], "fan_in": {"modo": "primeiro"}},
            "e": {"executador": "e", "depende": ["b"]},
        }
    )
    paused(story, 1, 1 + pause)
    story.confirm(0, 2, when=22)
    story.ok(2, b'{"n":1}', when=23)
    story.ok(0, b'{"n":1}', when=25)
    assert [story.ticket(p).status.value for p in (1, 3)] == [status, "pendente"]
    ((_, _, body),) = payloads.orders(story.state, [(3, 1)], story.state.started_at)
    sent = strict_json.loads(body)["payload"]["dados"]
    journal = checked(story)
    assert [one["status"] for one in sent] == ["pendente", "concluida"]
    assert task_rules.given_to(journal.plan, 3, journal.tickets, journal.grown_result) == sent


@pytest.mark.parametrize("pause", [0.5, 20])
def test_who_looks_late_finds_a_round_and_its_loop_out_of_time_at_once_after_a_pause_too(pause: float) -> None:
    story = loop_story(around={"timeout_s": 20}, faz={**FIRST, "timeout_s": 10})
    paused(story, 1, 1 + pause)
    story.confirm(ROUND, when=2 + pause)
    story.wake(60)
    assert [story.ticket(p).status for p in (0, ROUND)] == [Status.TIMEOUT, Status.TIMEOUT]
    checked(story)
