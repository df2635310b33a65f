"""Series of requests, read when they are scraped: what was looked at, came again, was merged or had no id."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric

from oraculo.runtime.requests import RequestIntake


def request_series(requests: RequestIntake | None) -> Iterable[Metric]:
    """Return the series; without values before the process runs."""
    looked = CounterMetricFamily(
        "orchestration_plan_validations",
        "Requests that were looked at, by whether they can be planned",
        labels=["result"],
    )
    repeated = CounterMetricFamily(
        "orchestrator_idempotency_cache_hits",
        "Requests that had been accepted before and got the same answer",
        labels=["component"],
    )
    merged = CounterMetricFamily(
        "orchestration_requests_merged",
        "Requests that exist once and were merged into the run of an equal one",
        labels=[],
    )
    unnamed = CounterMetricFamily(
        "neural_hive_orchestrator_correlation_id_missing",
        "Requests without a correlation_id, which were given one",
        labels=[],
    )
    if requests is not None:
        for result, count in requests.validations.items():
            looked.add_metric([result], count)
        repeated.add_metric(["requests"], requests.repeated)
        merged.add_metric([], requests.merged)
        unnamed.add_metric([], requests.unnamed)
    return looked, repeated, merged, unnamed
