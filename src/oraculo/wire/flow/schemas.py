"""The Avro records of Fluxo C that ship with Oráculo, and the numbers that they go by where there is no registry."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson

COGNITIVE_PLAN = "CognitivePlan"
CONSOLIDATED_DECISION = "ConsolidatedDecision"
EXECUTION_TICKET = "ExecutionTicket"
EXECUTION_RESULT = "ExecutionResult"
TELEMETRY_EVENT = "FlowCTelemetryEvent"
INCIDENT = "OrchestrationIncident"
TELEMETRY_FRAME = "TelemetryFrame"
APPROVAL_RESPONSE = "ApprovalResponse"

NUMBERS = {  # record → schema id; never changed, only added to
    COGNITIVE_PLAN: 1,
    CONSOLIDATED_DECISION: 2,
    EXECUTION_TICKET: 3,
    EXECUTION_RESULT: 4,
    TELEMETRY_EVENT: 5,
    INCIDENT: 6,
    TELEMETRY_FRAME: 7,
    APPROVAL_RESPONSE: 8,
}
FILES = {
    COGNITIVE_PLAN: "cognitive-plan.avsc",
    CONSOLIDATED_DECISION: "consolidated-decision.avsc",
    EXECUTION_TICKET: "execution-ticket.avsc",
    EXECUTION_RESULT: "execution-result.avsc",
    TELEMETRY_EVENT: "flow-c-telemetry-event.avsc",
    INCIDENT: "orchestration-incident.avsc",
    TELEMETRY_FRAME: "telemetry-frame.avsc",
    APPROVAL_RESPONSE: "approval-response.avsc",
}


@cache
def text(record: str) -> str:
    """The schema as it ships."""
    return files("oraculo.wire").joinpath("schemas", "avro", FILES[record]).read_text(encoding="utf-8")


def schema(record: str) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(text(record))
    return document
