"""Series of policies, read when they are scraped. Names and labels are those of Fluxo C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.policies.seen import PolicyStatistics

CIRCUITS = {"closed": 0, "half_open": 1, "open": 2}


def policy_series(policies: Policies | None) -> Iterable[Metric]:
    """All of them; without values while policies are off."""
    on = policies is not None and policies.engine is not None
    found = policies.statistics if policies is not None and on else PolicyStatistics()
    named = ["policy_name", "rule"]
    yield _counter(
        "opa_validations", "Verdicts of packages that were asked", ["policy_name", "result"], found.validations
    )
    yield _counter(
        "opa_policy_rejections", "Rules that refused a plan or a ticket", [*named, "severity"], found.rejections
    )
    yield _counter("opa_policy_warnings", "Warnings of policies", named, found.warnings)
    yield _counter(
        "opa_evaluation_errors",
        "Packages that could not be evaluated",
        ["error_type"],
        {(kind,): count for kind, count in found.errors.items()},
    )
    yield _counter("opa_cache_hits", "Verdicts that were found in memory", [], {(): found.cache_hits} if on else {})
    yield _durations(found, on)
    state = GaugeMetricFamily(
        "opa_circuit_breaker_state", "0: policies are asked; 1: tried again; 2: left alone", labels=["circuit_name"]
    )
    if policies is not None and policies.engine is not None:
        state.add_metric([policies.engine.name], CIRCUITS[policies.status().circuit])
    yield state


def _durations(found: PolicyStatistics, on: bool) -> Metric:
    family = HistogramMetricFamily("opa_policy_decision_duration_seconds", "One question for many inputs", labels=[])
    if on:
        family.add_metric([], found.buckets(), found.seconds)
    return family


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
