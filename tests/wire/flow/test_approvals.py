"""What is asked of a human, and what the answer says, in the forms that the original's approval service knows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.test_flow import made, node
from oraculo.core.commands import Approve
from oraculo.core.flow.profile import Flow, flow_in
from oraculo.errors import WireError
from oraculo.wire import strict_json
from oraculo.wire.flow import approvals, schemas
from oraculo.wire.flow.codec import avro_body
from wire.flow.samples import APPROVAL, PLAN

AT = datetime(2026, 1, 2, tzinfo=UTC)


def flow(document: dict[str, Any]) -> Flow:
    found = flow_in(made(node("a")))
    assert found is not None
    return Flow(
        found.plan_id,
        found.intent_id,
        found.decision_id,
        found.risk_band,
        found.priority,
        found.security_level,
        found.specs,
        found.correlation_id,
        document=strict_json.compact(document),
    )


def test_what_a_plan_does_not_say_is_left_out_and_never_null() -> None:
    asked = approvals.request(flow({"plan_id": "p", "risk_score": None, "is_destructive": None}), AT)
    assert not {"risk_score", "is_destructive", "destructive_tasks", "risk_matrix"} & set(asked)
    told = {"risk_score": 0.7, "is_destructive": True, "destructive_tasks": ["t"], "risk_matrix": {"A": 0.1}}
    asked = approvals.request(flow(told), AT)
    assert told == {name: asked[name] for name in told}
    assert (asked["status"], asked["requested_at"]) == ("pending", int(AT.timestamp() * 1000))


def test_in_avro_it_is_the_plan_that_came() -> None:
    about = flow(PLAN)
    record = approvals.plan_record(approvals.request(about, AT))
    assert record == {
        **PLAN,
        "plan_id": about.plan_id,
        "intent_id": about.intent_id,
        "correlation_id": about.correlation_id,
        "risk_band": about.risk_band.value,
        "requires_approval": True,
        "approval_status": "pending",
    }


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([field["name"] for field in schemas.schema("CognitivePlan")["fields"]]), json_values
    )
)
def test_whatever_a_plan_says_can_be_written(document: dict[str, Any]) -> None:
    document.pop("schema_version", None)
    assert avro_body(schemas.COGNITIVE_PLAN, approvals.plan_record(approvals.request(flow(document), AT)))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (APPROVAL, "cedo demais"),
        ({"plan_id": "plan-1", "decision": "rejected", "approved_by": "ana", "reason": "não"}, "não"),
        (
            {
                "plan_id": "plan-1",
                "status": "REJECTED",
                "approved_by": "ana",
                "rejection_reason": None,
                "comments": "c",
            },
            "c",
        ),
        (
            {"plan_id": "plan-1", "decision": "rejected", "approved_by": "ana", "rejection_reason": "a", "reason": "b"},
            "a",
        ),
    ],
)
def test_the_reason_of_a_refusal_is_kept(said: dict[str, Any], reason: str) -> None:
    assert approvals.answer(said) == ("plan-1", Approve(False, "ana", reason))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"decision": "approved"}, "missing_field"),
        ({"plan_id": 7, "decision": "approved"}, "missing_field"),
        ({"plan_id": "p", "decision": "perhaps"}, "invalid_field"),
    ],
)
def test_an_answer_that_says_nothing(said: dict[str, Any], code: str) -> None:
    with pytest.raises(WireError) as error:
        approvals.answer(said)
    assert error.value.code == code
