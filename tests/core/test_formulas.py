"""The formulas of Fluxo C, row by row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.given import T0, Story, at, flow
from oraculo.core.execution_limit import execution_timeout
from oraculo.core.flow import service_levels
from oraculo.core.flow.allocation import qos_weight, risk_weight, score_of_plan
from oraculo.core.flow.cognitive import FLOW_SLA, CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.flow.outcome import budget_status, look_again_s, sla, violated
from oraculo.core.flow.score_sentences import explain
from oraculo.core.flow.service_levels import RELAXED, STRICT, Qos, SlaRules
from oraculo.core.plan import NOTICE_WAITS, Backoff, NoticeTargets
from oraculo.core.priority import urgency
from oraculo.core.results import jittered
from oraculo.core.vocabulary import Priority, RiskBand

BANDS = {band.value: band for band in RiskBand}


@pytest.mark.parametrize(
    ("estimate", "timeout"), [(None, 180_000), (0, 60_000), (10_000, 60_000), (20_000, 60_000), (20_001, 60_003)]
)
def test_ticket_timeout(estimate: int | None, timeout: int) -> None:
    assert service_levels.timeout_ms(estimate) == timeout


def test_ticket_timeout_as_set() -> None:
    assert service_levels.timeout_ms(1000, SlaRules(500, 1.5)) == 1500
    assert service_levels.timeout_ms(100, SlaRules(500, 1.5)) == 500


@pytest.mark.parametrize(("band", "retries"), [("critical", 5), ("high", 3), ("medium", 2), ("low", 1)])
def test_max_retries(band: str, retries: int) -> None:
    assert service_levels.max_retries(BANDS[band]) == retries


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
    assert service_levels.qos(BANDS[band]) == Qos(mode, consistency, "PERSISTENT")


@pytest.mark.parametrize(
    ("band", "asked", "given"),
    [
        ("critical", None, "CRITICAL"), ("critical", "LOW", "CRITICAL"), ("high", None, "HIGH"),
        ("high", "CRITICAL", "CRITICAL"), ("medium", "LOW", "NORMAL"), ("medium", None, "NORMAL"),
        ("low", None, "NORMAL"), ("low", "LOW", "LOW"), ("low", "HIGH", "HIGH"),
    ],
)  # fmt: skip
def test_priority(band: str, asked: str | None, given: str) -> None:
    assert service_levels.priority(BANDS[band], Priority(asked) if asked else None) is Priority(given)


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
    assert execution_timeout(timedelta(milliseconds=60_000)) == timedelta(milliseconds=90_000)


@pytest.mark.parametrize(("retry", "most"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 32), (5, 60), (6, 60), (98, 60)])
def test_back_off_between_attempts_of_a_ticket(retry: int, most: int) -> None:
    """min(2 × 2^retry, 60) s; ours is the longest wait, of which a share is kept."""
    waits = [jittered(FlowRules().backoff, f"ticket{n}", retry + 1).total_seconds() for n in range(200)]
    assert most * 0.9 < max(waits) <= most


@pytest.mark.parametrize("band", BANDS)
def test_attempts(band: str) -> None:
    plan = CognitivePlan("p", "i", (TaskNode("a", "EXECUTE"),), ("a",), BANDS[band])
    made = plan_of(plan, FlowRules(), T0, str, name="c")
    assert made.tasks[0].max_attempts == service_levels.max_retries(BANDS[band]) + 1


def test_webhook_back_off() -> None:
    """2 × 2^retry s, three times; then, unlike the original, the schedule of all other notices."""
    asked = CognitivePlan("p", "i", (TaskNode("a", "EXECUTE"),), ("a",), RiskBand.LOW)
    plan = plan_of(asked, FlowRules(), T0, str, name="c", notify=NoticeTargets(queue="avisos"))
    assert [wait.total_seconds() for wait in plan.notify.waits[:3]] == [2, 4, 8]
    assert plan.notify.waits[3:] == NOTICE_WAITS


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
def test_the_score_of_a_plan_that_asks_for_no_priority_is_the_original_s(band: str, now: float, score: float) -> None:
    fresh = score_of_plan(BANDS[band], service_levels.priority(BANDS[band], None))
    assert fresh == score_of_plan(BANDS[band], None)
    assert fresh.at_urgency(urgency(T0, at(100), at(now))).value == pytest.approx(score)


@pytest.mark.parametrize(
    ("band", "asked", "score"),
    [
        ("low", "LOW", 0.3485), ("low", "NORMAL", 0.3885), ("low", "HIGH", 0.4285), ("low", "CRITICAL", 0.4885),
        ("medium", "NORMAL", 0.4685), ("medium", "HIGH", 0.5085), ("medium", "CRITICAL", 0.5685),
        ("high", "HIGH", 0.67), ("high", "CRITICAL", 0.73), ("critical", "CRITICAL", 0.79),
    ],
)  # fmt: skip
def test_priority_counts_in_the_score(band: str, asked: str, score: float) -> None:
    assert score_of_plan(BANDS[band], Priority(asked)).value == score


def test_a_score_in_words() -> None:
    low = score_of_plan(RiskBand.LOW, Priority.LOW)
    assert explain(low, RiskBand.LOW, Priority.LOW) == (
        "0.3485 = 0.4 × 0.3 (risco low) + 0.3 × 0.595 (qualidade de serviço) + 0.3 × 0.3 (urgência)"
        " − 0.2 × 0.2 (prioridade LOW)"
    )
    late = score_of_plan(RiskBand.HIGH, Priority.CRITICAL).at_urgency(1.0)
    assert explain(late, RiskBand.HIGH, Priority.CRITICAL, "en").startswith("0.94 = 0.4 × 0.7 (risk high)")


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
