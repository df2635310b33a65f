"""The Avro types of the Orchestrator Dynamic, as its schemas have them, against those that ship with Oráculo.

Avro compares the names of types when it resolves a writer's schema to a reader's, so a name that differs is a message
that cannot be read. A fingerprint is SHA-256 of a schema's parsing canonical form: names, fields, their order and
types, and nothing of documentation and defaults. These were taken from the original's own files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import fastavro
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form

from oraculo.wire.flow import schemas
from oraculo.wire.flow.codec import Codec
from wire.flow.samples import DECISION, PLAN, SAMPLES
from wire.flow.test_codec import Others, framed

COGNITIVA, CONSENSUS = "com.neuralhivemind.cognitiva", "com.neuralhivemind.consensus"
ORCHESTRATION, EXECUTION = "com.neuralhivemind.orchestration", "neural.hive.execution"
NAMES = {
    schemas.COGNITIVE_PLAN: [
        f"{COGNITIVA}.{name}"
        for name in ("CognitivePlan", "TaskNode", "RiskBand", "PlanStatus", "CognitiveDomain", "ApprovalStatus")
    ],
    schemas.CONSOLIDATED_DECISION: [
        f"{CONSENSUS}.{name}"
        for name in ("ConsolidatedDecision", "DecisionType", "ConsensusMethod", "SpecialistVote", "ConsensusMetrics")
    ],
    schemas.EXECUTION_RESULT: [
        f"{EXECUTION}.{name}" for name in ("ExecutionResult", "ExecutionStatus", "ExecutionResultPayload")
    ],
    schemas.EXECUTION_TICKET: [
        f"{ORCHESTRATION}.{name}"
        for name in (
            "ExecutionTicket", "TaskType", "TicketStatus", "Priority", "RiskBand", "SLA", "QoS", "DeliveryMode",
            "Consistency", "Durability", "SecurityLevel",
        )
    ],
    schemas.TELEMETRY_EVENT: [f"io.neuralhive.telemetry.{name}" for name in ("FlowCTelemetryEvent", "FlowCEventType")],
    schemas.INCIDENT: [f"io.neuralhive.orchestration.{name}" for name in ("OrchestrationIncident", "IncidentType")],
    schemas.APPROVAL_RESPONSE: [f"com.neuralhive.approval.{name}" for name in ("ApprovalResponse", "Decision")],
}  # fmt: skip
FINGERPRINTS = {
    schemas.COGNITIVE_PLAN: "7c56a8c7592c9c1651065d82dc894db09177bf839b20b0096c41ae5e337454e2",
    schemas.CONSOLIDATED_DECISION: "cfde5ffaecaa48d75f5f480a0f2f76345b8333ff5a113043e073b8e1fe01e598",
    schemas.EXECUTION_RESULT: "594f0047c54ea25b04583327aa988fa7e3f287a3ad0efda7e3142df4d1454b21",
    schemas.EXECUTION_TICKET: "c86e60b315eb6b421a7312710752b74841a9a29918e635e5fa6592e31b896b1f",
    schemas.TELEMETRY_EVENT: "816c74f9d98991e21c307b7b06a343d72bba11e12813c5cf2588880892ad92e0",
    schemas.APPROVAL_RESPONSE: "91369538072c6a46dd83b4bd8e8445f6b702729a0804a96424b7792dce1ce3cf",
    schemas.INCIDENT: "50eb9c2df4ccd14bf6b57002a38ec597ea5ac34b729f02617b1b9ff399d3041b",
}


def names_in(schema: Any, space: str = "") -> Iterator[str]:
    if isinstance(schema, list):
        for branch in schema:
            yield from names_in(branch, space)
    elif isinstance(schema, dict):
        if schema["type"] in ("record", "enum", "fixed"):
            space = schema.get("namespace", space)
            yield f"{space}.{schema['name']}"
        for part in (schema["type"], schema.get("items"), schema.get("values")):
            yield from names_in(part, space) if not isinstance(part, str) else ()
        for field in schema.get("fields", ()):
            yield from names_in(field["type"], space)


def test_every_record_of_the_original_is_compared() -> None:
    assert set(NAMES) == set(FINGERPRINTS) == set(schemas.NUMBERS) - {schemas.TELEMETRY_FRAME}  # the frame is ours


@pytest.mark.parametrize("record", FINGERPRINTS)
def test_the_types_have_the_originals_names(record: str) -> None:
    assert list(names_in(schemas.schema(record))) == NAMES[record]


@pytest.mark.parametrize("record", FINGERPRINTS)
def test_the_types_are_the_originals(record: str) -> None:
    assert fingerprint(to_parsing_canonical_form(schemas.schema(record)), "SHA-256") == FINGERPRINTS[record]


def with_logical_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Instants as the original has them."""
    text = json.dumps(schema)
    for name in ("created_at", "valid_until", "approved_at"):
        text = text.replace(
            f'{{"name": "{name}", "type": "long"',
            f'{{"name": "{name}", "type": {{"type": "long", "logicalType": "timestamp-millis"}}',
        )
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("record", [schemas.COGNITIVE_PLAN, schemas.CONSOLIDATED_DECISION])
def test_what_its_producers_write_is_read(record: str) -> None:
    schema = with_logical_types(schemas.schema(record))
    assert "timestamp-millis" in json.dumps(schema)
    file = BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), SAMPLES[record])
    read = Codec(Others(_7=schema)).decode(
        (schemas.CONSOLIDATED_DECISION, schemas.COGNITIVE_PLAN), framed(7, file.getvalue())
    )
    assert read == {schemas.COGNITIVE_PLAN: PLAN, schemas.CONSOLIDATED_DECISION: DECISION}[record]


def test_a_plan_of_a_writer_that_has_our_former_schema_is_still_read() -> None:
    former = json.loads(json.dumps(schemas.schema(schemas.COGNITIVE_PLAN)).replace("CognitiveDomain", "OriginalDomain"))
    file = BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(former), PLAN)
    assert Codec(Others(_8=former)).decode(schemas.COGNITIVE_PLAN, framed(8, file.getvalue())) == PLAN
