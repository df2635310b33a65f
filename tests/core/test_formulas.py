"""The formulas of Fluxo C, row by row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.given import T0, Story, at, flow
from oraculo.core import ticket
from oraculo.core.agents import (
    Telemetry,
    affinity,
    agent_score,
    composite,
    eligible,
    health_score,
    load_score,
    queue_score,
    registry_rank,
    telemetry_score,
)
from oraculo.core.allocation import priority_score, qos_weight, risk_weight, urgency
from oraculo.core.cognitive import FLOW_SLA, CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.notices import SCHEDULE, schedule
from oraculo.core.pheromones import decayed, net, strength
from oraculo.core.plan import Backoff
from oraculo.core.results import jittered
from oraculo.core.ticket import RELAXED, STRICT, Qos, SlaRules
from oraculo.core.verdict import budget_status, look_again_s, sla, violated
from oraculo.core.vocabulary import Priority, RiskBand

BANDS = {band.value: band for band in RiskBand}


@pytest.mark.parametrize(
    ("estimate", "timeout"), [(None, 180_000), (0, 60_000), (10_000, 60_000), (20_000, 60_000), (20_001, 60_003)]
)
def test_ticket_timeout(estimate: int | None, timeout: int) -> None:
    assert ticket.timeout_ms(estimate) == timeout


def test_ticket_timeout_as_set() -> None:
    assert ticket.timeout_ms(1000, SlaRules(500, 1.5)) == 1500
    assert ticket.timeout_ms(100, SlaRules(500, 1.5)) == 500


@pytest.mark.parametrize(("band", "retries"), [("critical", 5), ("high", 3), ("medium", 2), ("low", 1)])
def test_max_retries(band: str, retries: int) -> None:
    assert ticket.max_retries(BANDS[band]) == retries


@pytest.mark.parametrize(
    ("band", "mode", "consistency"),
    [
        ("critical", "EXACTLY_ONCE", "STRONG"),
        ("high", "EXACTLY_ONCE", "STRONG"),
        ("medium", "AT_LEAST_ONCE", "EVENTUAL"),
        ("low", "AT_LEAST_ONCE", "EVENTUAL"),
    ],
)
def test_quality_of_service(band: str, mode: str, consistency: str) -> None:
    assert ticket.qos(BANDS[band]) == Qos(mode, consistency, "PERSISTENT")


@pytest.mark.parametrize(
    ("band", "asked", "given"),
    [
        ("critical", None, "CRITICAL"), ("critical", "LOW", "CRITICAL"), ("high", None, "HIGH"),
        ("high", "CRITICAL", "CRITICAL"), ("medium", "LOW", "NORMAL"), ("medium", None, "NORMAL"),
        ("low", None, "NORMAL"), ("low", "LOW", "LOW"), ("low", "HIGH", "HIGH"),
    ],
)  # fmt: skip
def test_priority(band: str, asked: str | None, given: str) -> None:
    assert ticket.priority(BANDS[band], Priority(asked) if asked else None) is Priority(given)


def test_flow_sla() -> None:
    assert timedelta(seconds=14_400) == FLOW_SLA


def test_general_retry_settings() -> None:
    """One second first, doubled each time, a minute at most; ours is the longest wait, of which a share is kept."""
    backoff = Backoff()
    for attempt, most in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (50, 60)]:
        waits = [jittered(backoff, f"ticket{n}", attempt).total_seconds() for n in range(200)]
        assert 0 < min(waits) <= max(waits) <= most
        assert max(waits) > most * 0.9


def test_worker_execution_timeout() -> None:
    assert ticket.execution_timeout(timedelta(milliseconds=60_000)) == timedelta(milliseconds=90_000)


@pytest.mark.parametrize(("retry", "most"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 32), (5, 60), (6, 60), (98, 60)])
def test_back_off_between_attempts_of_a_ticket(retry: int, most: int) -> None:
    """min(2 × 2^retry, 60) s; ours is the longest wait, of which a share is kept."""
    waits = [jittered(FlowRules().backoff, f"ticket{n}", retry + 1).total_seconds() for n in range(200)]
    assert most * 0.9 < max(waits) <= most


@pytest.mark.parametrize("band", BANDS)
def test_attempts(band: str) -> None:
    plan = CognitivePlan("p", "i", (TaskNode("a", "EXECUTE"),), ("a",), BANDS[band])
    made = plan_of(plan, FlowRules(), T0, str, name="c")
    assert made.tasks[0].max_attempts == ticket.max_retries(BANDS[band]) + 1


def test_webhook_back_off() -> None:
    """2 × 2^retry s, three times; then, unlike the original, the schedule of all other notices."""
    plan = plan_of(
        CognitivePlan("p", "i", (TaskNode("a", "EXECUTE"),), ("a",), RiskBand.LOW), FlowRules(), T0, str, name="c"
    )
    assert [wait.total_seconds() for wait in schedule(plan)[:3]] == [2, 4, 8]
    assert schedule(plan)[3:] == SCHEDULE
    assert schedule(replace(plan, rules=1)) == SCHEDULE  # as it was accepted
    assert schedule(replace(plan, flow=None)) == SCHEDULE


@pytest.mark.parametrize(
    ("done", "seconds"),
    [(0, 10), (24, 10), (25, 20), (49, 20), (50, 40), (74, 40), (75, 60), (89, 60), (90, 60), (100, 60)],
)
def test_polling(done: int, seconds: int) -> None:
    assert look_again_s(done, 100) == seconds


@pytest.mark.parametrize(
    ("band", "weight"),
    [("critical", 1.0), ("high", 0.7), ("normal", 0.5), ("medium", 0.5), ("anything", 0.5), ("low", 0.3)],
)
def test_risk_weight(band: str, weight: float) -> None:
    assert risk_weight(band) == weight


@pytest.mark.parametrize(
    ("qos", "weight"),
    [
        (STRICT, 1.0),
        (RELAXED, 0.7 * 0.85),
        (Qos("AT_MOST_ONCE", "EVENTUAL", "TRANSIENT"), 0.5 * 0.85 * 0.9),
        (Qos("AT_LEAST_ONCE", "STRONG", "EPHEMERAL"), 0.7 * 0.8),
    ],
)
def test_qos_weight(qos: Qos, weight: float) -> None:
    assert qos_weight(qos) == pytest.approx(weight)


@pytest.mark.parametrize(
    ("now", "weight"), [(0, 0.3), (49.9, 0.3), (50, 0.7), (79.9, 0.7), (80, 1.0), (100, 1.0), (200, 1.0)]
)
def test_urgency(now: float, weight: float) -> None:
    assert urgency(T0, at(100), at(now)) == weight


@pytest.mark.parametrize(
    ("band", "now", "score"),
    [
        ("critical", 0, 0.4 + 0.3 + 0.09),
        ("critical", 90, 1.0),
        ("high", 0, 0.28 + 0.3 + 0.09),
        ("medium", 0, 0.2 + 0.3 * 0.595 + 0.09),
        ("low", 60, 0.12 + 0.3 * 0.595 + 0.21),
    ],
)
def test_priority_score(band: str, now: float, score: float) -> None:
    assert priority_score(BANDS[band], ticket.qos(BANDS[band]), T0, at(100), at(now)) == pytest.approx(score)


@pytest.mark.parametrize(
    ("predicted", "anomaly", "factor"), [(150, False, 1.0), (151, False, 1.2), (0, True, 1.2), (200, True, 1.44)]
)
def test_prediction_boost(predicted: float, anomaly: bool, factor: float) -> None:
    low = RiskBand.LOW
    plain = priority_score(low, ticket.qos(low), T0, at(100), at(0))
    boosted = priority_score(
        low, ticket.qos(low), T0, at(100), at(0), predicted_ms=predicted, estimated_ms=100, anomaly=anomaly
    )
    assert boosted == pytest.approx(plain * factor)


def test_a_boosted_score_is_never_above_one() -> None:
    critical = RiskBand.CRITICAL
    assert priority_score(critical, STRICT, T0, at(100), at(90), anomaly=True) == 1.0


@pytest.mark.parametrize(
    ("status", "score"), [("HEALTHY", 1.0), ("DEGRADED", 0.6), ("UNHEALTHY", 0.3), ("UNKNOWN", 0.5)]
)
def test_health(status: str, score: float) -> None:
    assert health_score(status) == score


@pytest.mark.parametrize(
    ("telemetry", "score"),
    [
        (None, 0.5),
        (Telemetry(1.0, 0, 1000), 1.0),
        (Telemetry(1.0, 0, 5000), 1.0),
        (Telemetry(0.5, 2500, 500), 0.3 + 0.1 + 0.1),
        (Telemetry(0.0, 9000, 0), 0.0),
    ],
)
def test_telemetry(telemetry: Telemetry | None, score: float) -> None:
    assert telemetry_score(telemetry) == pytest.approx(score)


@pytest.mark.parametrize(("queue", "score"), [(0, 1.0), (5000, 0.5), (10_000, 0.0), (20_000, 0.0)])
def test_queue(queue: float, score: float) -> None:
    assert queue_score(queue) == score


def test_load() -> None:
    assert load_score(0.25) == 0.75


@pytest.mark.parametrize(
    ("status", "load", "active", "most", "takes"),
    [
        ("HEALTHY", 0.9, 0, 10, True), ("HEALTHY", 0.91, 0, 10, False), ("HEALTHY", 0.1, 10, 10, False),
        ("DEGRADED", 0.1, 9, 10, True), ("UNHEALTHY", 0.1, 0, 10, False), ("OTHER", 0.0, 0, 10, False),
    ],
)  # fmt: skip
def test_who_takes_work(status: str, load: float, active: int, most: int, takes: bool) -> None:
    assert eligible(status, load, active, most) is takes


def test_agent_score() -> None:
    assert agent_score(1.0, 0.5) == pytest.approx(0.75)
    assert agent_score(1.0, 0.5, queue=0.8, load=0.4) == pytest.approx(0.4 + 0.15 + 0.16 + 0.04)
    assert agent_score(1.0, 0.5, boost=1.2) == pytest.approx(0.9)
    assert agent_score(1.0, 0.5, affine=0.7) == pytest.approx(0.75 * 1.2)


def test_composite() -> None:
    assert composite(0.8, 0.5) == pytest.approx(0.6 * 0.8 + 0.4 * 0.5)


@pytest.mark.parametrize(
    ("plan", "intent", "critical", "holds", "score"),
    [
        (0, 0, False, False, 0.6 * 0.5 + 0.3 * 0.5 + 0.1 * 0.5),
        (3, 3, False, False, 0.6 + 0.15 + 0.1),
        (1, 0, True, False, 0.6 * (0.5 + 0.5 / 3) + 0.3 + 0.05),
        (9, 0, True, True, 0.6 + 0.0 + 0.05),
    ],
)
def test_affinity(plan: int, intent: int, critical: bool, holds: bool, score: float) -> None:
    assert affinity(plan, intent, critical, holds) == pytest.approx(score)


@pytest.mark.parametrize(
    ("success", "warning", "failure", "score"), [(0, 0, 0, 0.5), (8, 2, 0, 0.9), (0, 0, 5, 0.0), (5, 0, 5, 0.5)]
)
def test_pheromone_of_the_registry(success: int, warning: int, failure: int, score: float) -> None:
    assert strength(success, warning, failure) == pytest.approx(score)


def test_registry_rank() -> None:
    assert registry_rank("HEALTHY", 0.8, 0.9) == pytest.approx(0.4 + 0.24 + 0.27)
    assert registry_rank("DEGRADED", 0.8, 0.9) == pytest.approx(0.2 + 0.24 + 0.27)
    assert registry_rank("UNHEALTHY", 0.0, 0.0) == 0.0


def test_pheromone_of_signals() -> None:
    assert decayed(1.0, timedelta(0)) == 1.0
    assert decayed(1.0, timedelta(minutes=30)) == pytest.approx(0.9**0.5)
    assert decayed(0.8, timedelta(hours=1)) == pytest.approx(0.72)
    assert decayed(1.0, timedelta(hours=1, seconds=1)) == 0.0  # its time is over
    assert net(0.9, 0.2, 0.4) == pytest.approx(0.5)
    assert net(0.1, 0.9, 0.0) == 0.0
    assert net(3.0, 0.0, 0.0) == 1.0


@pytest.mark.parametrize(
    ("left", "status"),
    [(1.0, "HEALTHY"), (0.5, "HEALTHY"), (0.49, "WARNING"), (0.2, "WARNING"), (0.19, "CRITICAL"), (0.0, "EXHAUSTED")],
)
def test_error_budget(left: float, status: str) -> None:
    assert budget_status(left) == status


@pytest.mark.parametrize(
    ("hours", "approaching", "critical"),
    [(0, False, False), (3.19, False, False), (3.2001, True, True)],
)
def test_deadline_approaching_and_budget_critical(hours: float, approaching: bool, critical: bool) -> None:
    """At 80 % of its time, of four hours here; below 20 % of it left."""
    said = sla(Story(flow({"a": []})).state, at(3600 * hours))
    assert (said["deadline_approaching"], said["budget_critical"]) == (approaching, critical)


@pytest.mark.parametrize(
    ("ok", "after", "stored", "violates"),
    [
        (False, 181, None, True),  # 180 s are allowed; completed − started
        (False, 179, None, False),
        (False, 1, 180_001, True),  # what the worker said comes first
        (False, 500, 180_000, False),
        (True, 500, None, False),  # it completed
        (True, 1, 180_001, False),
    ],
)
def test_violation(ok: bool, after: float, stored: int | None, violates: bool) -> None:
    story = Story(flow({"a": []}))
    story.confirm(0)
    said = b"{}" if stored is None else b'{"actual_duration_ms":%d}' % stored
    story.do(story.answer(0, ok=ok, dados=said), after)
    assert violated(story.state, 0) is violates
