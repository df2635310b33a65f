"""The shipped policies: each rule with one violation and with two, on OPA and embedded, with the same verdict."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tools.servers.opa import Opa, opa

import servers
from oraculo.adapters.policies.embedded import EmbeddedPolicies, read_folder
from oraculo.adapters.policies.opa import OpaPolicies
from oraculo.bootstrap.policies import SHIPPED
from oraculo.ports.policies import PolicyEngine
from oraculo.runtime.policies.fields import EVERYTHING, paths_in
from oraculo.wire import strict_json

PREFIX = "neuralhive.orchestrator."
WEEK_MS = 604_800_000


def document(**more: Any) -> dict[str, Any]:
    """A ticket that keeps every rule, with what `more` says in addition: `resource__sla__timeout_ms=1`."""
    made: dict[str, Any] = {
        "resource": {
            "risk_band": "high",
            "priority": "HIGH",
            "qos": {"delivery_mode": "EXACTLY_ONCE", "consistency": "STRONG"},
            "sla": {"timeout_ms": 60_000, "max_retries": 3, "deadline": 3_600_000},
            "estimated_duration_ms": 10_000,
            "required_capabilities": ["testing"],
            "contains_pii": False,
        },
        "context": {
            "point": "ticket", "current_time": 0, "total_tickets": 5, "tenant_id": "default", "namespace": "default",
            "user_id": "ana", "current_load": 0.5, "queue_depth": 9, "model_accuracy": 0.9,
        },
        "parameters": {"allowed_capabilities": [], "max_concurrent_tickets": 100},
        "flags": {
            "intelligent_scheduler_enabled": True, "scheduler_namespaces": [], "burst_capacity_enabled": True,
            "burst_threshold": 0.8, "premium_tenants": [], "auto_scaling_enabled": True, "scaling_threshold": 5,
            "predictive_allocation_enabled": True,
        },
        "security": {
            "allowed_tenants": [], "rbac_roles": {}, "tenant_rate_limits": {}, "default_tenant_rate_limit": 100
        },
    }  # fmt: skip
    for name, value in more.items():
        place = made
        *path, last = name.split("__")
        for step in path:
            place = place[step]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return made


ANA_MAY_TEST = {"security__rbac_roles": {"ana": ["developer"]}}
CASES: list[
    tuple[str, dict[str, Any], list[str]]
] = [  # package, what is unlike, the rules that are not kept (a rule twice: two violations of it)
    ("resource_limits", {}, []),
    ("resource_limits", {"resource__sla__timeout_ms": 3_600_001}, ["timeout_exceeds_maximum"]),
    ("resource_limits", {"resource__sla__timeout_ms": 3_600_001, "context__point": "plano"}, []),
    ("resource_limits", {"resource__risk_band": None, "resource__sla__timeout_ms": 3_600_001}, []),
    (
        "resource_limits",
        {"resource__risk_band": None, "resource__sla__timeout_ms": 7_200_001},
        ["timeout_exceeds_maximum"],
    ),
    ("resource_limits", {"resource__sla__max_retries": 4}, ["retries_exceed_maximum"]),
    ("resource_limits", {"resource__estimated_duration_ms": 999}, ["estimated_duration_unrealistic"]),
    (
        "resource_limits",
        {"resource__estimated_duration_ms": 999, "resource__sla__timeout_ms": 900},
        ["estimated_duration_unrealistic"] * 2,
    ),
    ("resource_limits", {"parameters__allowed_capabilities": ["deployment"]}, ["capabilities_not_allowed"]),
    (
        "resource_limits",
        {"parameters__allowed_capabilities": ["x"], "resource__required_capabilities": ["testing", "validation"]},
        ["capabilities_not_allowed"] * 2,
    ),
    ("resource_limits", {"context__total_tickets": 101}, ["concurrent_tickets_limit"]),
    ("sla_enforcement", {}, []),
    ("sla_enforcement", {"resource__sla__deadline": None}, []),
    ("sla_enforcement", {"resource__sla__deadline": -1}, ["deadline_in_past"]),
    ("sla_enforcement", {"resource__sla__deadline": WEEK_MS + 1}, ["deadline_too_far"]),
    ("sla_enforcement", {"resource__qos__consistency": "EVENTUAL"}, ["qos_mismatch_risk_band"]),
    (
        "sla_enforcement",
        {"resource__qos": {"delivery_mode": "AT_LEAST_ONCE", "consistency": "EVENTUAL"}},
        ["qos_mismatch_risk_band"] * 2,
    ),
    ("sla_enforcement", {"resource__risk_band": "low", "resource__qos__consistency": "EVENTUAL"}, []),
    ("sla_enforcement", {"resource__priority": "NORMAL"}, ["priority_mismatch_risk_band"]),
    (
        "sla_enforcement",
        {"resource__priority": "LOW", "resource__sla__timeout_ms": 14_999},
        ["priority_mismatch_risk_band", "timeout_insufficient"],
    ),
    ("security_constraints", {}, []),
    ("security_constraints", {"security__allowed_tenants": ["acme"]}, ["cross_tenant_access"]),
    ("security_constraints", {**ANA_MAY_TEST}, []),
    ("security_constraints", {**ANA_MAY_TEST, "context__user_id": None}, ["missing_authentication"]),
    (
        "security_constraints",
        {**ANA_MAY_TEST, "resource__required_capabilities": ["deployment", "analysis"]},
        ["insufficient_permissions"] * 2,
    ),
    (
        "security_constraints",
        {"security__rbac_roles": {"ana": ["admin"]}, "resource__required_capabilities": ["deployment"]},
        [],
    ),
    ("security_constraints", {"resource__contains_pii": True}, ["pii_handling_violation"]),
    ("security_constraints", {"resource__contains_pii": True, "resource__data_classification": "Confidential"}, []),
    (
        "security_constraints",
        {"resource__contains_pii": True, "security__allowed_tenants": ["acme"]},
        ["cross_tenant_access", "pii_handling_violation"],
    ),
]
ALLOWED_ALL_THE_SAME: list[tuple[str, dict[str, Any], str]] = [
    ("security_constraints", {"context__request_count_last_minute": 101}, "tenant_rate_limit_exceeded")
]
FLAGS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"enable_intelligent_scheduler", "enable_auto_scaling"}),
    ({"flags__scheduler_namespaces": ["production"]}, {"enable_auto_scaling"}),
    (
        {"flags__premium_tenants": ["default"], "context__queue_depth": 5},
        {"enable_intelligent_scheduler", "enable_burst_capacity"},
    ),
    (
        {"context__namespace": "staging"},
        {
            "enable_intelligent_scheduler", "enable_auto_scaling", "enable_predictive_allocation",
            "enable_experimental_features",
        },
    ),
]  # fmt: skip


@pytest.fixture(params=["embedded", "opa"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PolicyEngine]:
    folder = read_folder(SHIPPED)
    if request.param == "embedded":
        made: PolicyEngine = EmbeddedPolicies(folder, folder.packages, 20.0)
        await made.open()
        yield made
        await made.close()
        return
    server = servers.own("opa", tmp_path)
    assert isinstance(server, Opa)
    server.policies = SHIPPED
    with server:
        made = OpaPolicies(server.url)
        await made.open()
        yield made
        await made.close()


async def said(engine: PolicyEngine, package: str, *documents: dict[str, Any]) -> list[Any]:
    found = await engine.evaluate([PREFIX + package], [strict_json.dumps(one) for one in documents])
    assert not any(one.error for (one,) in found), found
    return [one.value for (one,) in found]


async def test_each_rule_says_the_same_on_both_engines(engine: PolicyEngine) -> None:
    for package in ("resource_limits", "sla_enforcement", "security_constraints"):
        cases = [(unlike, rules) for name, unlike, rules in CASES if name == package]
        answers = await said(engine, package, *(document(**unlike) for unlike, _ in cases))
        for (unlike, rules), value in zip(cases, answers, strict=True):
            assert sorted(one["rule"] for one in value["violations"]) == sorted(rules), (package, unlike)
            assert value["allow"] is not bool(rules), (package, unlike)
            for one in value["violations"]:
                assert set(one) == {"policy", "rule", "severity", "field", "msg", "expected", "actual"}
    for package, unlike, rule in ALLOWED_ALL_THE_SAME:
        (value,) = await said(engine, package, document(**unlike))
        assert [one["rule"] for one in value["violations"]] == [rule] and value["allow"] is True
    (value,) = await said(engine, "sla_enforcement", document(resource__sla__deadline=11_999))
    assert [one["rule"] for one in value["warnings"]] == ["deadline_approaching_threshold"] and value["allow"] is True
    answers = await said(engine, "feature_flags", *(document(**unlike) for unlike, _ in FLAGS))
    for (unlike, on), value in zip(FLAGS, answers, strict=True):
        assert {name for name, is_on in value.items() if name.startswith("enable") and is_on} == on, unlike
        assert value["allow"] is True


def test_opa_finds_nothing_wrong_with_the_shipped_policies() -> None:
    servers.use("opa")
    done = subprocess.run([str(opa().path), "check", "--strict", str(SHIPPED)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_shipped_policies_read_named_parts_of_their_input_only() -> None:
    paths = paths_in(read_folder(SHIPPED).modules.values())
    assert EVERYTHING not in paths
    assert ("resource",) not in paths and ("context",) not in paths
    assert ("resource", "ticket_id") not in paths and ("context", "correlation_id") not in paths
