"""The topics of Fluxo C, and what travels on each. A topic is a queue of the broker port."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from oraculo.wire.flow import schemas


@dataclass(frozen=True, slots=True)
class Topics:
    consensus: str = "plans.consensus"
    tickets: str = "execution.tickets"
    results: str = "execution.results"
    telemetry: str = "telemetry.orchestration"
    incidents: str = "orchestration.incidents"
    events: str = "telemetry-flow-c"
    approval_requests: str = "cognitive-plans-approval-requests"
    approval_responses: str = "cognitive-plans-approval-responses"

    @property
    def every(self) -> frozenset[str]:
        return frozenset(astuple(self))

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that the orchestrator consumes, as one group."""
        return self.consensus, self.results, self.approval_responses

    @property
    def records(self) -> dict[str, str]:
        """Avro record → the topic whose values it is. The telemetry frame is JSON wherever it goes."""
        return {
            schemas.CONSOLIDATED_DECISION: self.consensus,
            schemas.EXECUTION_TICKET: self.tickets,
            schemas.EXECUTION_RESULT: self.results,
            schemas.INCIDENT: self.incidents,
            schemas.TELEMETRY_EVENT: self.events,
            schemas.COGNITIVE_PLAN: self.approval_requests,
        }
