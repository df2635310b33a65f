"""Plans of Fluxo C for tests of the audit, and a journal that is projected to MongoDB."""

from __future__ import annotations

from datetime import timedelta

from core.given import at
from oraculo.adapters.sinks.mongo import MongoAudit
from oraculo.adapters.sinks.mongo.writer import Writer
from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.plan import Plan
from oraculo.core.vocabulary import RiskBand
from oraculo.ports.store import Store

DOCUMENT = b'{"plan_id":"p-1","a.b":{"$x":[1,18446744073709551615]},"tasks":[]}'


def flow(plan_id: str = "p-1", *, approval: bool = False) -> Plan:
    """build → deploy; each may be tried once."""
    nodes = (
        TaskNode("build", "BUILD", "faz", parameters=b'{"ramo":"main","n":3}', max_retries=0),
        TaskNode("deploy", "DEPLOY", "instala", ("build",), required_capabilities=("k8s",), max_retries=0),
    )
    plan = CognitivePlan(
        plan_id, "i-1", nodes, ("build", "deploy"), RiskBand.HIGH, decision_id="d-1", correlation_id="c-1",
        requires_approval=approval, document=DOCUMENT,
    )  # fmt: skip
    rules = FlowRules(timeout=timedelta(hours=4))
    return plan_of(plan, rules, at(0), lambda worker: f"executador_{worker}", name=plan_id)


def audit_of(variables: dict[str, str], store: Store, fail_open: tuple[str, ...] = ()) -> MongoAudit:
    writer = Writer(
        variables["MONGODB_URI"], variables["MONGODB_DATABASE"], max_pool=4, min_pool=0, fail_open=fail_open
    )
    return MongoAudit(writer, store.load)
