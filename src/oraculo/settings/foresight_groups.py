"""Settings of what looks ahead: predicted durations, trails of workers, and alerts of service levels."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.settings import readers as read
from oraculo.settings.declare import group, setting


@dataclass(frozen=True, slots=True)
class PredictionsSettings:
    """Predicted durations."""

    enabled: bool = setting(
        "ORACULO_PREDICTIONS",
        "false",
        read.flag,
        "`true`: how long tasks take is learnt from the journal, and runs say when they will end",
    )
    drift: bool = setting(
        "ML_DRIFT_DETECTION_ENABLED",
        "true",
        read.flag,
        "`false`: durations that have changed lately are neither told nor learnt faster",
    )
    baseline: bool = setting(
        "ML_DRIFT_BASELINE_ENABLED",
        "true",
        read.flag,
        "`false`: what drift is measured against is not stored: each start begins to measure it anew",
    )
    past_errors: bool = setting(
        "ML_BACKFILL_ERRORS",
        "false",
        read.flag,
        "`true`: metrics of errors begin with those of the past, which are stored with what was learnt; `false`: with "
        "none",
    )


@dataclass(frozen=True, slots=True)
class TrailsSettings:
    """Trails of workers."""

    enabled: bool = setting(
        "ORACULO_TRAILS",
        "false",
        read.flag,
        "`true`: success and failure of workers leave [trails](workers.md#trails), which fade",
    )
    half_life_s: float = setting(
        "ORACULO_TRAIL_HALF_LIFE_S", "23688", read.number(1, 31536000), "After how many seconds a mark counts half"
    )


@dataclass(frozen=True, slots=True)
class SlaManagementSettings:
    """A service of error budgets, as the original has it."""

    enabled: bool = setting(
        "SLA_MANAGEMENT_ENABLED",
        "false",
        read.flag,
        "`true`: with ORACULO_SLA, the error budgets that another service has of this one (OTEL_SERVICE_NAME) are "
        "watched, too, and one that is critical is told",
    )
    host: str = setting(
        "SLA_MANAGEMENT_HOST",
        "sla-management-system.neural-hive-orchestration.svc.cluster.local",
        read.host,
        "Its host",
    )
    port: int = setting("SLA_MANAGEMENT_PORT", "8000", read.whole(1, 65535), "Its port")
    timeout_s: float = setting(
        "SLA_MANAGEMENT_TIMEOUT_SECONDS", "5", read.number(0.1, 60), "How long it may take to answer"
    )
    interval_s: float = setting(
        "SLA_MANAGEMENT_CACHE_TTL_SECONDS", "10", read.number(1, 3600), "For how long its answer is not asked again"
    )


@dataclass(frozen=True, slots=True)
class SlaSettings:
    """Alerts of service levels."""

    enabled: bool = setting(
        "ORACULO_SLA",
        "false",
        read.flag,
        "`true`: deadlines that are near or missed are [told](sla.md), and objectives are measured",
    )
    near: float = setting(
        "SLA_DEADLINE_WARNING_THRESHOLD",
        "0.8",
        read.number(0.01, 0.99),
        "Share of its time after which a run or a ticket is told to be near its deadline",
    )
    interval_s: float = setting(
        "SLA_CHECK_INTERVAL_SECONDS",
        "15",
        read.number(1, 3600),
        "Seconds between two looks at objectives; deadlines are told when they come",
    )
    critical: float = setting(
        "SLA_BUDGET_CRITICAL_THRESHOLD",
        "0.2",
        read.number(0.1, 0.5),
        "Share of an error budget; with so much left or less it is critical. Up to a tenth it is exhausted, above one "
        "half healthy",
    )
    webhook: str = setting(
        "ORACULO_SLA_WEBHOOK",
        "",
        read.optional(read.url("http", "https", several=False)),
        "Where each alert is sent as a webhook, signed like those of runs; empty: nowhere",
    )
    alerts_topic: str = setting(
        "SLA_ALERTS_TOPIC", "sla.alerts", read.topic, "Where alerts are published, with Fluxo C"
    )
    violations_topic: str = setting(
        "SLA_VIOLATIONS_TOPIC", "sla.violations", read.topic, "Where missed deadlines are published, with Fluxo C"
    )
    budgets_topic: str = setting(
        "SLA_BUDGETS_TOPIC", "sla.budgets", read.topic, "Where changes of error budgets are published, with Fluxo C"
    )
    freezes_topic: str = setting(
        "SLA_FREEZE_EVENTS_TOPIC", "sla.freeze.events", read.topic, "Where freezes are published, with Fluxo C"
    )
    management: SlaManagementSettings = group(SlaManagementSettings, "Error budgets of another service")
