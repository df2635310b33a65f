"""The topics of Fluxo C for the AsyncAPI document: Avro in registry framing on Kafka, JSON of the same records too."""

from __future__ import annotations

from typing import Any

from oraculo.wire.flow import schemas
from oraculo.wire.flow.topics import Topics

FORMAT = "application/vnd.apache.avro+json;version=1.9.0"
APPROVAL = "approval"
_TOPICS = Topics()
_CHANNELS = {  # channel → topic, what travels there, whether the orchestrator sends it, what it is
    "consensus": (
        _TOPICS.consensus,
        (schemas.CONSOLIDATED_DECISION, schemas.COGNITIVE_PLAN),
        "receive",
        "decisions, each with its plan, or plans by themselves",
    ),
    "tickets": (_TOPICS.tickets, (schemas.EXECUTION_TICKET,), "send", "tickets whose dependencies have completed"),
    "execution_results": (_TOPICS.results, (schemas.EXECUTION_RESULT,), "receive", "what became of tickets"),
    "telemetry": (_TOPICS.telemetry, (schemas.TELEMETRY_FRAME,), "send", "one frame for each plan that has ended"),
    "telemetry_events": (_TOPICS.events, (schemas.TELEMETRY_EVENT,), "send", "what happens to plans and tickets"),
    "incidents": (_TOPICS.incidents, (schemas.INCIDENT,), "send", "what somebody has to look at"),
    "approval_requests": (
        _TOPICS.approval_requests,
        (APPROVAL, schemas.COGNITIVE_PLAN),
        "send",
        "plans that wait for a human: JSON with the plan inside, or the plan in Avro",
    ),
    "approval_responses": (
        _TOPICS.approval_responses,
        (schemas.APPROVAL_RESPONSE,),
        "receive",
        "what a human said of them",
    ),
}


def channels() -> dict[str, Any]:
    return {
        name: {
            "address": topic,
            "description": about,
            "messages": {record: {"$ref": f"#/components/messages/{record}"} for record in records},
        }
        for name, (topic, records, _, about) in _CHANNELS.items()
    }


def operations() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (_, _, action, _) in _CHANNELS.items():
        found[f"{action}_{name}"] = {"action": action, "channel": {"$ref": f"#/channels/{name}"}}
    found["send_tickets"]["reply"] = {"channel": {"$ref": "#/channels/execution_results"}}
    return found


def messages() -> dict[str, Any]:
    found: dict[str, Any] = {APPROVAL: {"name": APPROVAL, "payload": {"type": "object"}}}
    for record, number in schemas.NUMBERS.items():
        document = schemas.schema(record)
        found[record] = {
            "name": record,
            "summary": document["doc"],
            "description": f"0x00, the schema's number (without a registry: {number}) as four bytes, the Avro body; "
            "or the same record as JSON",
            "contentType": "application/vnd.confluent.avro",
            "payload": {"schemaFormat": FORMAT, "schema": document},
        }
    return found
