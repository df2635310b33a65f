"""C5 finds what does not fit together. The core makes no such journal, so one is written by hand and folded."""

from __future__ import annotations

from datetime import timedelta

from core.given import RUN, Story, at, flow
from oraculo.core import events as ev
from oraculo.core.flow import outcome
from oraculo.core.flow.outcome import IncidentType
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import Status
from oraculo.wire.flow.telemetry import incident_record


def folded(*events: tuple[float, ev.Event]) -> Orchestration:
    """A plan of a, and b behind it, whose journal goes on like this."""
    start = Story(flow({"a": [], "b": ["a"]})).journal
    return fold([*start, *((at(when), [event]) for when, event in events)])


def broken() -> Orchestration:
    """b completed although a failed."""
    failed = ev.TicketFailed(0, 1, Status.ERRO, [{"codigo": "x", "mensagem": "y", "definitivo": True}])
    return folded(
        (1, failed),
        (2, ev.TicketsDispatched([1], 1)),
        (3, ev.TicketConcluded(1, 1, b"{}", [], 7)),
        (4, ev.OrchestrationClosed(Status.PARCIAL)),
    )


def test_completed_although_its_dependency_failed() -> None:
    result = outcome.consolidated(broken(), at(4))
    assert (result["consistent"], result["errors"]) == (False, ["b completed although a did not"])


def test_completed_before_it_started() -> None:
    state = folded((2, ev.DispatchConfirmed([(0, 1)])), (1, ev.TicketConcluded(0, 1, b"{}", [], 7)))
    assert outcome.integrity(state) == ["a completed before it started", "b is not closed"]


def test_an_inconsistency_is_an_incident() -> None:
    state = broken()
    found = {one.incident_type: one for one in outcome.incidents(state)}
    incident = found[IncidentType.INCONSISTENCY]
    assert (incident.severity, incident.escalation_required) == ("WARNING", False)
    assert incident.details == ("b completed although a did not",)
    record = incident_record(state, incident, at(4) + timedelta(seconds=1))
    assert record["incident_type"] == "INCONSISTENCY"
    assert state.run == RUN


def test_what_the_core_makes_is_consistent() -> None:
    story = Story(flow({"a": [], "b": ["a"]}))
    story.ok(0)
    story.ok(1)
    assert outcome.consolidated(story.state, at(9))["consistent"] is True
