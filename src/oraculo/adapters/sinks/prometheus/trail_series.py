"""Series of trails, read when they are scraped: how strong the marks of each class of workers are now."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from oraculo.runtime.trails import Trails

LAYER = "execution"
QUEUES_MAX = 200  # that have series of their own: those with the strongest trails


def trail_series(trails: Trails | None) -> Iterable[Metric]:
    """Return the series, of queues and never of single workers; without values where nothing is followed."""
    strength = GaugeMetricFamily(
        "neural_hive_pheromone_strength",
        "Marks of success, warning and failure that answers of a queue left, as far as they have not faded",
        labels=["layer", "domain", "pheromone_type"],
    )
    found = [] if trails is None else [(key, trail) for key, trail in trails.all() if not key.worker]
    for key, trail in sorted(found, key=lambda one: -one[1].strength)[:QUEUES_MAX]:
        marks = (("SUCCESS", trail.success), ("WARNING", trail.warning), ("FAILURE", trail.failure))
        for kind, value in marks:
            strength.add_metric([LAYER, key.queue, kind], round(value, 4))
    yield strength
