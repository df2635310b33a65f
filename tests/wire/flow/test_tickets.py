"""The ExecutionTicket of a ticket at every stage of its life, as the outside decodes it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from core.given import RUN, T0, Story, at
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.core.flow.cognitive import FlowRules, plan_of
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import WireError
from oraculo.wire.flow import tickets
from oraculo.wire.flow.codec import JSON, Codec
from oraculo.wire.flow.decisions import decision_of
from wire.flow.samples import DECISION, PLAN, T0_MS, TASK

CODECS = (Codec(LocalRegistry()), Codec(LocalRegistry(), JSON))


def story(change: dict[str, Any] | None = None, **tasks: dict[str, Any]) -> Story:
    """`a` before `b` before `c`, with one retry each, unless said otherwise."""
    given = tasks or {"a": {}, "b": {"dependencies": ["a"]}, "c": {"dependencies": ["b"]}}
    document = {
        **PLAN,
        "risk_band": "low",
        "original_priority": None,
        "tasks": [{**TASK, "task_id": name, **one} for name, one in given.items()],
        "execution_order": list(given),
        **(change or {}),
    }
    decision = decision_of({**DECISION, "cognitive_plan": document})
    assert decision.plan is not None
    made = plan_of(decision.plan, FlowRules(), T0, lambda name: f"executador_{name}", name="abc123")
    return Story(made)


def ticket(told: Story, position: int) -> dict[str, Any]:
    """The record; it goes through Avro and JSON as it is."""
    assert told.state is not None
    found = tickets.execution_ticket(told.state, position, at(told.now))
    for codec in CODECS:
        assert codec.decode("ExecutionTicket", codec.encode("ExecutionTicket", found)) == found
    return found


def test_every_field_of_a_ticket_that_waits_to_be_published() -> None:
    assert ticket(story(), 0) == {
        "ticket_id": ticket_id(RUN, 0),
        "plan_id": "plan-1",
        "intent_id": "intent-1",
        "decision_id": "dec-1",
        "correlation_id": "corr-1",
        "trace_id": PLAN["trace_id"],
        "span_id": PLAN["span_id"],
        "task_id": "a",
        "task_type": "BUILD",
        "description": "compilar",
        "dependencies": [],
        "status": "PENDING",
        "priority": "NORMAL",
        "risk_band": "low",
        "sla": {"deadline": T0_MS + 90_000, "timeout_ms": 90_000, "max_retries": 1},
        "qos": {"delivery_mode": "AT_LEAST_ONCE", "consistency": "EVENTUAL", "durability": "PERSISTENT"},
        "parameters": {"alvo": "api"},
        "required_capabilities": ["python"],
        "security_level": "INTERNAL",
        "created_at": T0_MS,
        "started_at": None,
        "completed_at": None,
        "estimated_duration_ms": 30_000,
        "actual_duration_ms": None,
        "retry_count": 0,
        "error_message": None,
        "compensation_ticket_id": None,
        "metadata": {
            "dono": "ana",
            "workflow_id": "orch-plan-1",
            "generated_by": "oraculo",
            "attempt": "1",
            "priority_score": "0.3885",
            "priority_score_explanation": "0.3885 = 0.4 × 0.3 (risk low) + 0.3 × 0.595 (quality of service)"
            " + 0.3 × 0.3 (urgency) + 0.2 × 0 (priority NORMAL)",
        },
        "schema_version": 1,
    }


def test_what_a_ticket_depends_on_and_when_it_was_made() -> None:
    told = story()
    assert ticket(told, 1)["dependencies"] == [ticket_id(RUN, 0)]
    assert (ticket(told, 1)["created_at"], ticket(told, 1)["metadata"]["attempt"]) == (T0_MS, "0")
    told.confirm(0, when=1)
    told.ok(0, when=5)
    later = ticket(told, 1)
    assert (later["created_at"], later["sla"]["deadline"]) == (T0_MS + 5_000, T0_MS + 95_000)


@pytest.mark.parametrize(
    ("band", "priority", "mode", "retries"),
    [("critical", "CRITICAL", "EXACTLY_ONCE", 5), ("high", "HIGH", "EXACTLY_ONCE", 3),
     ("medium", "NORMAL", "AT_LEAST_ONCE", 2), ("low", "NORMAL", "AT_LEAST_ONCE", 1)],
)  # fmt: skip
def test_what_the_risk_band_makes_of_it(band: str, priority: str, mode: str, retries: int) -> None:
    found = ticket(story({"risk_band": band}), 0)
    assert (found["priority"], found["qos"]["delivery_mode"], found["sla"]["max_retries"]) == (priority, mode, retries)


def test_a_life_that_goes_well() -> None:
    told = story()
    told.confirm(0, when=1)
    running = ticket(told, 0)
    assert (running["status"], running["started_at"], running["completed_at"]) == ("RUNNING", T0_MS + 1000, None)
    told.ok(0, b'{"success":true,"agent_id":"w","actual_duration_ms":777}', when=3)
    done = ticket(told, 0)
    assert (done["status"], done["completed_at"], done["actual_duration_ms"]) == ("COMPLETED", T0_MS + 3000, 777)
    assert done["error_message"] is None
    told.confirm(1, when=3)
    told.ok(1, b"[1]", when=4)
    assert ticket(told, 1)["actual_duration_ms"] == 1000


def test_an_end_is_after_its_beginning() -> None:
    told = story()
    told.confirm(0, when=1)
    told.ok(0, when=1)
    assert ticket(told, 0)["completed_at"] == ticket(told, 0)["started_at"] + 1


def test_a_retry() -> None:
    told = story()
    told.confirm(0, when=1)
    told.fail(0, when=2)
    waiting = ticket(told, 0)
    assert (waiting["status"], waiting["retry_count"], waiting["error_message"]) == ("PENDING", 0, "fora do ar")
    assert waiting["sla"]["deadline"] == T0_MS + 90_000
    told.wake(200)
    again = ticket(told, 0)
    assert (again["status"], again["retry_count"], again["created_at"]) == ("PENDING", 1, T0_MS)
    assert again["sla"]["deadline"] == T0_MS + 290_000  # whoever gets it now has as long as the first
    told.confirm(0, when=201)
    assert (ticket(told, 0)["status"], ticket(told, 0)["sla"]["deadline"]) == ("RUNNING", T0_MS + 291_000)


def failed() -> Story:
    """`a` and `b` were done, `c` failed for good: all three are being undone."""
    told = story()
    for position in (0, 1):
        told.confirm(position)
        told.ok(position)
    told.confirm(2)
    told.fail(2, definitivo=True)
    return told


def test_what_undoes_others_says_what_it_undoes_and_why() -> None:
    told = failed()
    assert told.state.undone == {2: 3, 1: 4, 0: 5}
    undo = ticket(told, 4)
    assert (undo["task_type"], undo["dependencies"], undo["status"]) == ("COMPENSATE", [], "PENDING")
    assert undo["task_id"].startswith("compensate-") and len(undo["task_id"]) == len("compensate-") + 8
    assert undo["parameters"] == {
        "alvo": "api",
        "original_ticket_id": ticket_id(RUN, 1),
        "action": "delete_artifacts",
        "reason": "task_failed",
    }
    assert undo["sla"]["timeout_ms"] == 120_000 and undo["decision_id"] == "dec-1"


def test_what_is_undone() -> None:
    told = failed()
    assert [ticket(told, position)["status"] for position in range(3)] == ["COMPENSATING"] * 3
    assert [ticket(told, p)["compensation_ticket_id"] for p in range(4)] == [
        *(ticket_id(RUN, p) for p in (5, 4, 3)),
        None,
    ]
    assert ticket(told, 2)["error_message"] == "fora do ar"
    told.confirm(3)
    told.ok(3)
    told.confirm(4)
    told.ok(4)
    told.confirm(5)
    told.fail(5, definitivo=True)
    assert [ticket(told, position)["status"] for position in range(6)] == [
        "COMPLETED", "COMPENSATED", "COMPENSATED", "COMPLETED", "COMPLETED", "FAILED",
    ]  # fmt: skip


def test_only_what_was_done_is_undone() -> None:
    told = story(None, a={}, b={}, c={"dependencies": ["b"]})
    told.confirm(0)
    told.ok(0)
    told.confirm(1)
    told.fail(1, definitivo=True)
    assert told.state.undone == {1: 3}
    assert [ticket(told, position)["status"] for position in range(4)] == [
        "COMPLETED",
        "COMPENSATING",
        "FAILED",
        "PENDING",
    ]
    assert ticket(told, 2)["error_message"] == "uma dependência falhou"


def test_what_is_no_text_is_written_as_json() -> None:
    parameters = {"n": 1, "nada": None, "lista": [1, {"a": "b"}], "texto": "x", "sim": True}
    found = ticket(story(None, a={"parameters": parameters, "metadata": {"n": 7, "nada": None}}), 0)
    assert found["parameters"] == {"n": "1", "nada": "", "lista": '[1,{"a":"b"}]', "texto": "x", "sim": "true"}
    assert (found["metadata"]["n"], found["metadata"]["nada"]) == ("7", "")


def test_how_urgent_it_is_and_that_nobody_chose_a_worker() -> None:
    told = story({"risk_band": "critical"})
    found = tickets.allocation(told.state, 0, at(0))
    assert found["priority_score"] == 0.79
    assert found["priority_score_parts"] == {"risk": 1.0, "qos": 1.0, "urgency": 0.3, "priority": 0.0}
    decisions = ("allocated_at", "agent_id", "agent_type", "allocation_method", "workers_evaluated", "agent_score")
    assert [found[name] for name in decisions] == [None] * 6
    assert tickets.allocation(told.state, 0, at(0) + timedelta(seconds=80))["priority_score"] == 1.0
    told.confirm(0)
    assert tickets.allocation(told.state, 0, at(0) + timedelta(seconds=80))["priority_score"] == 0.79  # when it went
    told.ok(0, b'{"agent_id":"w-1"}')
    assert tickets.allocation(told.state, 0, at(0))["agent_id"] == "w-1"
    json.dumps(found)


def test_its_metadata_explains_the_score() -> None:
    found = ticket(story({"risk_band": "medium", "original_priority": "CRITICAL"}), 0)["metadata"]
    assert found["priority_score"] == "0.5685"
    assert found["priority_score_explanation"] == (
        "0.5685 = 0.4 × 0.5 (risk medium) + 0.3 × 0.595 (quality of service) + 0.3 × 0.3 (urgency)"
        " + 0.2 × 0.5 (priority CRITICAL)"
    )


def test_a_value_that_is_no_ticket_is_not_written() -> None:
    with pytest.raises(WireError, match="status"):
        CODECS[0].encode("ExecutionTicket", {**ticket(story(), 0), "status": "CANCELLED"})
