"""Series of service levels, read when they are scraped: what was told, and how budgets stand."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from oraculo.core.sla.watch import AlertKind
from oraculo.core.tenants import DEFAULT_TENANT, local_name
from oraculo.runtime.sla.monitor import SlaMonitor


def sla_series(monitor: SlaMonitor | None) -> Iterable[Metric]:
    """Return the series; without values where nothing is watched."""
    told = CounterMetricFamily(
        "orchestration_sla_alerts_published", "Alerts that this process was the first to tell", labels=["alert_type"]
    )
    labels = ["tenant", "slo"]
    remaining = GaugeMetricFamily(
        "orchestration_sla_budget_remaining_percent", "Share of the error budget that is left, 0 to 1", labels=labels
    )
    burn = GaugeMetricFamily(
        "orchestration_sla_burn_rate",
        "Error ratio of a window over the error budget; 1 uses it up exactly at the end of the window",
        labels=[*labels, "window_hours"],
    )
    frozen = GaugeMetricFamily("orchestration_sla_freezes_active", "1: releases should wait", labels=labels)
    if monitor is not None:
        for kind in AlertKind:  # from the start, so that the first one is an increase
            told.add_metric([kind.value], monitor.told[kind.value])
        own: set[tuple[str, str]] = set()
        for name, slo in monitor.objectives.slos.items():
            key = [slo.tenant, local_name(name)]
            budget = monitor.objectives.budget(name, monitor.now())
            if budget.remaining is not None:
                remaining.add_metric(key, budget.remaining)
            for one in budget.burns:
                if one.rate is not None:
                    burn.add_metric([*key, str(one.hours)], one.rate)
            own.add((slo.tenant, key[1]))
            frozen.add_metric(key, int(any(one.slo == key[1] for one in monitor.active(slo.tenant))))
        for outside in monitor.outside():
            if (DEFAULT_TENANT, outside.slo) not in own:
                remaining.add_metric([DEFAULT_TENANT, outside.slo], outside.remaining)
    return told, remaining, burn, frozen
