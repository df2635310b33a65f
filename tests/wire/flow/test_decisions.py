"""Decisions and plans as their producers write them, and what is refused, with the place of every fault."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oraculo.adapters.registry.local import LocalRegistry
from oraculo.core.flow.cognitive import FlowRules, plan_of, problems
from oraculo.core.flow.decision import Course, Decision, FinalDecision
from oraculo.core.plan import MAX_TASKS
from oraculo.core.vocabulary import Priority, RiskBand, SecurityLevel
from oraculo.errors import WireError
from oraculo.wire.flow.codec import Codec
from oraculo.wire.flow.decisions import decision_of, plan_document
from wire.flow.samples import DECISION, PLAN, T0_MS, TASK
from wire.strategies import OBJECTS

NOW = datetime.fromtimestamp(T0_MS / 1000, UTC)


def plan(**change: Any) -> dict[str, Any]:
    return {**PLAN, **change}


def task(**change: Any) -> dict[str, Any]:
    return plan(tasks=[{**TASK, **change}], execution_order=["t1"])


def decision(**change: Any) -> dict[str, Any]:
    return {**DECISION, **change}


def refused(value: Any, read: Any = plan_document) -> WireError:
    with pytest.raises(WireError) as error:
        read(value)
    return error.value


def places(error: WireError) -> list[str]:
    return [item["campo"] for item in error.errors]


class TestPlan:
    def test_everything_is_read(self) -> None:
        found = plan_document(PLAN)
        assert (found.plan_id, found.intent_id, found.decision_id) == ("plan-1", "intent-1", "")
        assert (found.correlation_id, found.trace_id, found.span_id) == (
            "corr-1", "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331",
        )  # fmt: skip
        assert (found.risk_band, found.priority) == (RiskBand.HIGH, Priority.HIGH)
        assert found.security_level is SecurityLevel.INTERNAL
        assert found.valid_until == NOW + timedelta(hours=1)
        assert found.execution_order == ("t1", "t2")
        one, two = found.tasks
        assert (one.task_id, one.task_type, one.description) == ("t1", "BUILD", "compilar")
        assert (one.estimated_duration_ms, one.required_capabilities) == (30_000, ("python",))
        assert (one.parameters, one.metadata) == (b'{"alvo":"api"}', b'{"dono":"ana"}')
        assert (one.timeout_ms, one.max_retries, one.worker, two.dependencies) == (None, None, None, ("t1",))
        assert json.loads(found.document) == PLAN
        assert problems(found, NOW) == []

    def test_it_is_the_same_out_of_avro(self) -> None:
        codec = Codec(LocalRegistry())
        assert plan_document(codec.decode("CognitivePlan", codec.encode("CognitivePlan", PLAN))) == plan_document(PLAN)

    def test_the_least_that_is_needed(self) -> None:
        least = {
            "plan_id": "p",
            "intent_id": "i",
            "tasks": [{"task_id": "a", "task_type": "query"}],
            "execution_order": ["a"],
            "risk_band": "low",
        }
        found = plan_document(least)
        assert (found.priority, found.security_level) == (None, SecurityLevel.INTERNAL)
        assert plan_of(found, FlowRules(), NOW, str, name="x").tipo == "fluxo_c"

    @pytest.mark.parametrize("name", ["plan_id", "intent_id", "tasks", "execution_order", "risk_band"])
    @pytest.mark.parametrize("how", ["gone", "null"])
    def test_what_is_missing_is_named(self, name: str, how: str) -> None:
        value = plan(**{name: None})
        if how == "gone":
            del value[name]
        error = refused(value)
        assert (error.code, places(error)) == ("invalid_plan", [name])

    @pytest.mark.parametrize(
        ("said", "priority"),
        [
            ({"original_priority": "high"}, Priority.HIGH),
            ({"original_priority": " CRITICAL "}, Priority.CRITICAL),
            ({"original_priority": "medium"}, Priority.NORMAL),
            ({"original_priority": 1}, Priority.LOW),
            ({"original_priority": 2}, Priority.LOW),
            ({"original_priority": 3}, Priority.NORMAL),
            ({"original_priority": 5}, Priority.NORMAL),
            ({"original_priority": 6}, Priority.HIGH),
            ({"original_priority": "8"}, Priority.HIGH),
            ({"original_priority": 9}, Priority.CRITICAL),
            ({"original_priority": None, "priority": 9}, Priority.CRITICAL),
            ({"original_priority": None, "priority": "LOW"}, Priority.LOW),
            ({"original_priority": "HIGH", "priority": 1}, Priority.HIGH),
            ({"original_priority": None}, None),
            ({"original_priority": ""}, None),
        ],
    )
    def test_priorities_of_every_age(self, said: dict[str, Any], priority: Priority | None) -> None:
        assert plan_document(plan(**said)).priority is priority

    @pytest.mark.parametrize("said", ["urgent", -1, True, [], 1.5])
    def test_a_priority_that_is_none(self, said: Any) -> None:
        assert places(refused(plan(original_priority=said))) == ["original_priority"]

    @pytest.mark.parametrize(
        ("said", "level"),
        [
            ({"original_security_level": "confidential"}, SecurityLevel.CONFIDENTIAL),
            ({"original_security_level": None, "security_level": "RESTRICTED"}, SecurityLevel.RESTRICTED),
            ({"original_security_level": None}, SecurityLevel.INTERNAL),
        ],
    )
    def test_security_levels(self, said: dict[str, Any], level: SecurityLevel) -> None:
        assert plan_document(plan(**said)).security_level is level

    @pytest.mark.parametrize(
        ("said", "at"),
        [
            (T0_MS, NOW),
            (float(T0_MS), NOW),
            ("2025-10-14T12:00:00Z", NOW),
            ("2025-10-14T09:00:00-03:00", NOW),
            ("2025-10-14T12:00:00", NOW),
            (None, None),
        ],
    )
    def test_instants(self, said: Any, at: datetime | None) -> None:
        assert plan_document(plan(valid_until=said)).valid_until == at

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("valid_until", "amanhã"), ("valid_until", -1), ("valid_until", 10**18), ("valid_until", True),
            ("valid_until", "0001-01-01T00:00:00+14:00"),
            ("plan_id", 7), ("plan_id", "x" * 129), ("risk_band", "extreme"), ("risk_score", -0.1),
            ("risk_score", "high"), ("status", "x"), ("approval_status", "x"), ("requires_approval", "yes"),
            ("schema_version", "one"), ("tasks", {}), ("execution_order", "t1"), ("metadata", []),
            ("original_security_level", "SECRET"),
        ],
    )  # fmt: skip
    def test_what_is_not_allowed_is_named(self, name: str, said: Any) -> None:
        error = refused(plan(**{name: said}))
        assert (error.code, places(error)) == ("invalid_plan", [name])
        assert name in error.detail

    def test_every_fault_of_every_task_is_named(self) -> None:
        tasks = [{**TASK, "task_id": ""}, {**TASK, "estimated_duration_ms": "long"}, 7, {**TASK, "dependencies": [1]}]
        assert places(refused(plan(tasks=tasks))) == [
            "tasks.0.task_id", "tasks.1.estimated_duration_ms", "tasks.2", "tasks.3.dependencies.0",
        ]  # fmt: skip

    def test_too_many_tasks(self) -> None:
        error = refused(plan(tasks=[TASK] * (MAX_TASKS + 1)))
        assert places(error) == ["tasks"]

    @pytest.mark.parametrize(
        "said",
        [
            {"timeout_ms": 5000, "max_retries": 0, "worker": "robo"},
            {"timeout_ms": 5000.0, "max_retries": 0, "executador": "robo"},
            {"metadata": {"timeout_ms": "5000", "max_retries": "0", "worker": "robo"}},
            {"metadata": {"timeout_ms": 5000, "max_retries": 0, "executador": "robo"}},
            {"timeout_ms": 5000, "max_retries": 0, "worker": "robo",
             "metadata": {"timeout_ms": "1", "max_retries": "1", "worker": "outro"}},
        ],
    )  # fmt: skip
    def test_what_a_task_may_say_of_itself(self, said: dict[str, Any]) -> None:
        (found,) = plan_document(task(**said)).tasks
        assert (found.timeout_ms, found.max_retries, found.worker) == (5000, 0, "robo")

    @pytest.mark.parametrize(
        ("said", "reason"),
        [
            ({"timeout_ms": -1}, "timeout_ms -1"),
            ({"metadata": {"timeout_ms": "-1"}}, "timeout_ms -1"),
            ({"max_retries": 10_000_000}, "max_retries 10000000"),
            ({"estimated_duration_ms": -5}, "estimated_duration_ms -5"),
        ],
    )
    def test_numbers_that_make_no_sense_are_for_the_core_to_refuse(self, said: dict[str, Any], reason: str) -> None:
        assert reason in problems(plan_document(task(**said)), NOW)[0]

    @pytest.mark.parametrize("said", [{"timeout_ms": "soon"}, {"max_retries": True}, {"worker": "a b"}, {"worker": 7}])
    def test_what_a_task_may_not_say(self, said: dict[str, Any]) -> None:
        (place,) = places(refused(task(**said)))
        assert place == f"tasks.0.{next(iter(said))}"

    def test_metadata_are_texts(self) -> None:
        (found,) = plan_document(task(metadata={"n": 7, "nada": None, "o": {"a": [1]}, "t": "x"})).tasks
        assert json.loads(found.metadata) == {"n": "7", "nada": "", "o": '{"a":[1]}', "t": "x"}

    @pytest.mark.parametrize(
        ("said", "wanted"),
        [
            ({}, True),
            ({"compensation": "off"}, False),
            ({"compensation": False}, False),
            ({"compensation": "on"}, True),
        ],
    )
    def test_compensation_can_be_turned_off(self, said: dict[str, Any], wanted: bool) -> None:
        assert plan_document(plan(metadata=said)).compensate is wanted

    def test_who_was_approved_already_waits_for_nobody(self) -> None:
        assert not plan_document(plan(requires_approval=True)).says_approved
        approved = plan(requires_approval=True, approval_status="approved")
        assert plan_document(approved).says_approved
        assert decision_of(plan(requires_approval=True)).course() is Course.ASK
        assert decision_of(approved).course() is Course.RUN


class TestDecision:
    def test_the_plan_as_text(self) -> None:
        found = decision_of(DECISION)
        assert (found.decision_id, found.plan_id, found.intent_id) == ("dec-1", "plan-1", "intent-1")
        assert (found.final_decision, found.correlation_id) == (FinalDecision.APPROVE, "corr-1")
        assert found.reasoning == "todos de acordo"
        assert found.plan is not None and found.plan.decision_id == "dec-1"
        assert found.course() is Course.RUN

    def test_the_plan_as_an_object(self) -> None:
        assert decision_of(decision(cognitive_plan=PLAN)) == decision_of(DECISION)

    @pytest.mark.parametrize("inner", [PLAN, json.dumps(PLAN)])
    @pytest.mark.parametrize("outer", [dict, lambda value: json.dumps(value)])
    def test_the_plan_one_level_deeper(self, inner: Any, outer: Any) -> None:
        found = decision_of(decision(cognitive_plan=outer({"cognitive_plan": inner})))
        assert found == decision_of(DECISION)

    def test_out_of_avro(self) -> None:
        codec = Codec(LocalRegistry())
        raw = codec.encode("ConsolidatedDecision", DECISION)
        assert decision_of(codec.decode("ConsolidatedDecision", raw)) == decision_of(DECISION)

    @pytest.mark.parametrize("content", [None, ""])
    def test_no_plan(self, content: Any) -> None:
        found = decision_of(decision(cognitive_plan=content))
        assert found.plan is None and found.plan_id == "plan-1"

    def test_a_plan_takes_what_it_does_not_say_from_its_decision(self) -> None:
        bare = {key: item for key, item in PLAN.items() if key not in ("plan_id", "intent_id", "correlation_id")}
        found = decision_of(decision(cognitive_plan=bare)).plan
        assert found is not None
        assert (found.plan_id, found.intent_id, found.correlation_id) == ("plan-1", "intent-1", "corr-1")
        assert json.loads(found.document) == bare

    @pytest.mark.parametrize("value", [PLAN, {"cognitive_plan": PLAN}, {**PLAN, "decision_id": None}])
    def test_a_plan_by_itself(self, value: dict[str, Any]) -> None:
        found = decision_of(value)
        assert (found.decision_id, found.plan_id, found.course()) == ("", "plan-1", Course.RUN)
        assert found.plan is not None and found.plan.decision_id == ""

    @pytest.mark.parametrize(
        ("change", "course"),
        [
            ({"final_decision": "reject"}, Course.REJECT),
            ({"final_decision": "REJECT"}, Course.REJECT),
            ({"final_decision": "review_required"}, Course.ASK),
            ({"requires_human_review": True}, Course.ASK),
            ({"final_decision": "conditional"}, Course.RUN),
            ({"cognitive_plan": {**PLAN, "requires_approval": True}}, Course.ASK),
            ({"cognitive_plan": {**PLAN, "approval_status": "rejected"}}, Course.REJECT),
            ({"cognitive_plan": {**PLAN, "status": "rejected"}}, Course.REJECT),
        ],
    )
    def test_the_course(self, change: dict[str, Any], course: Course) -> None:
        assert decision_of(decision(**change)).course() is course

    @pytest.mark.parametrize(
        ("change", "code", "where"),
        [
            ({"decision_id": None}, "invalid_decision", "decision_id"),
            ({"plan_id": None}, "invalid_decision", "plan_id"),
            ({"plan_id": ""}, "invalid_decision", "plan_id"),
            ({"final_decision": None}, "invalid_decision", "final_decision"),
            ({"final_decision": "maybe"}, "invalid_decision", "final_decision"),
            ({"requires_human_review": "no"}, "invalid_decision", "requires_human_review"),
            ({"decision_id": "x" * 129}, "invalid_decision", "decision_id"),
            ({"plan_id": "outro"}, "invalid_decision", "cognitive_plan.plan_id"),
            ({"cognitive_plan": "{"}, "invalid_plan", "cognitive_plan"),
            ({"cognitive_plan": "[]"}, "invalid_plan", "cognitive_plan"),
            ({"cognitive_plan": 7}, "invalid_plan", "cognitive_plan"),
            ({"cognitive_plan": {"cognitive_plan": 7}}, "invalid_plan", "cognitive_plan.cognitive_plan"),
            ({"cognitive_plan": {**PLAN, "risk_band": None}}, "invalid_plan", "cognitive_plan.risk_band"),
        ],
    )
    def test_what_is_refused_and_where(self, change: dict[str, Any], code: str, where: str) -> None:
        error = refused(decision(**change), decision_of)
        assert (error.code, places(error)) == (code, [where])

    def test_neither_a_decision_nor_a_plan(self) -> None:
        error = refused({"ola": "mundo"}, decision_of)
        assert error.code == "invalid_decision" and "tasks" in error.detail

    @settings(max_examples=150, deadline=None)
    @given(OBJECTS, st.sampled_from(sorted(DECISION)), st.sampled_from(sorted(PLAN)))
    def test_nothing_but_a_wire_error_comes_of_any_object(self, value: dict[str, Any], one: str, other: str) -> None:
        for message in (
            value,
            {**DECISION, one: value},
            {**DECISION, "cognitive_plan": {**PLAN, other: value}},
            {**PLAN, "tasks": [{**TASK, name: value} for name in TASK]},
        ):
            try:
                assert isinstance(decision_of(message), Decision)
            except WireError as error:
                assert error.code in ("invalid_decision", "invalid_plan")
