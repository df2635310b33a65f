"""Series of predicted durations, read when they are scraped: whether what was predicted came true."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from oraculo.core.durations.errors import ERROR_BUCKETS
from oraculo.core.durations.history import Known
from oraculo.runtime.durations.learning import Durations

DURATION = "duration"  # what is predicted
DESTINATIONS_MAX = 200  # that have series of their own: those that were seen most often


def prediction_series(durations: Durations | None) -> Iterable[Metric]:
    """Return the series; without values where nothing is predicted."""
    total = CounterMetricFamily(
        "orchestration_ml_predictions",
        "Tasks that ended, by whether that was within the predicted p90",
        labels=["model_type", "result"],
    )
    error = HistogramMetricFamily(
        "orchestration_ml_prediction_error",
        "How far predicted durations (p50) were from actual ones, as a share of these",
        labels=["model_type"],
    )
    labels = ["tenant", "destino"]
    coverage = GaugeMetricFamily(
        "orchestration_ml_prediction_coverage", "Recent share of tasks that ended within the p90", labels=labels
    )
    drift = GaugeMetricFamily(
        "orchestration_ml_drift", "1: durations have changed lately and are being learnt anew", labels=labels
    )
    if durations is not None:
        errors = durations.errors
        if errors.judged:
            total.add_metric([DURATION, "within"], errors.within)
            total.add_metric([DURATION, "beyond"], errors.beyond)
        counts = accumulate(errors.counts)
        bounds = [*(str(bound) for bound in ERROR_BUCKETS), "+Inf"]
        error.add_metric([DURATION], list(zip(bounds, counts, strict=True)), errors.total)
        for level, known in _most_seen(durations):
            tenant, _, destination = level.partition("/")
            coverage.add_metric([tenant, destination], known.calibration.covered)
            drift.add_metric([tenant, destination], int(durations.history.has_drifted(known)))
    return total, error, coverage, drift


def _most_seen(durations: Durations) -> list[tuple[str, Known]]:
    found = [(level, known) for level, known in durations.history.keys.items() if level.count("/") == 2]
    return sorted(found, key=lambda one: -one[1].seen)[:DESTINATIONS_MAX]
