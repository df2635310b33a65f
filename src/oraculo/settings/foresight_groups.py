"""Settings of what looks ahead: predicted durations, trails of workers, and alerts of service levels."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.settings import readers as read
from oraculo.settings.declare import setting


@dataclass(frozen=True, slots=True)
class PredictionsSettings:
    """Predicted durations."""

    enabled: bool = setting(
        "ORACULO_PREDICTIONS",
        "false",
        read.flag,
        "`true`: how long tasks take is learnt from the journal, and runs say when they will end",
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
