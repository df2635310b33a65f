"""Series of the scheduler, read when they are scraped. Names and labels are those of Fluxo C."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from oraculo.errors import StoreError
from oraculo.runtime.scheduler.counts import SchedulerCounts, Tally
from oraculo.runtime.scheduler.preempting import Preemption, PreemptionCounts
from oraculo.runtime.scheduler.scheduler import LeaseScheduler

GIVEN, NOT_GIVEN = "success", "failed"


def scheduler_series(scheduler: LeaseScheduler | None) -> Iterable[Metric]:
    """All of them; without values while nothing is scheduled."""
    on, counts = scheduler is not None, SchedulerCounts() if scheduler is None else scheduler.counts
    outcomes: dict[tuple[str, ...], float] = {(GIVEN,): counts.given.total(), (NOT_GIVEN,): counts.not_given}
    yield _counter(
        "orchestration_resource_allocations", "Tickets given to workers by choice", ["status"], outcomes if on else {}
    )
    yield _counter(
        "orchestration_scheduler_allocations",
        "The same, by how the worker was chosen",
        ["method"],
        {(method,): count for method, count in counts.given.items()},
    )
    yield _counter(
        "orchestration_scheduler_rejections",
        "Workers that were looked at and did not get a ticket",
        ["reason"],
        {(reason.value,): count for reason, count in counts.refused.items()},
    )
    yield _counter(
        "orchestration_scheduler_discovery_failures",
        "Registered workers could not be read",
        ["error_type"],
        {(kind,): count for kind, count in counts.discovery_failures.items()}
        or ({(StoreError.__name__,): 0} if on else {}),
    )
    yield _counter(
        "orchestration_scheduler_cache_hits",
        "Looks at registered workers that were a moment old",
        [],
        {} if scheduler is None else {(): scheduler.workers.cache_hits},
    )
    yield _histogram(
        "orchestration_scheduler_allocation_duration_seconds",
        "How long tickets were here before a worker got them",
        counts.waited if on else None,
    )
    yield _histogram(
        "orchestration_scheduler_workers_discovered", "Workers looked at for a ticket", counts.workers if on else None
    )
    for name, had, text in (("hits", True, "had others of the same"), ("misses", False, "had none of the same")):
        yield _counter(
            f"neural_hive_orchestrator_affinity_{name}",
            f"Tickets given to a worker that {text} plan or intent",
            ["affinity_type"],
            {(what,): counts.shared[what, had] for what, _ in counts.shared},
        )
    waiting = GaugeMetricFamily("orchestration_scheduler_offers", "Messages that wait here for a worker", labels=[])
    if scheduler is not None:
        waiting.add_metric([], scheduler.waiting)
    yield waiting
    offers = None if scheduler is None or scheduler.offers is None else scheduler.offers.counts
    known = {} if offers is None else {"made": offers.made, "taken": offers.taken, "lapsed": offers.lapsed}
    yield _counter(
        "orchestration_scheduler_broker_offers",
        "Tickets offered to workers of a broker in their own queues, begun by them in time, and withdrawn",
        ["outcome"],
        {(outcome,): count for outcome, count in known.items()},
    )
    yield from _preemption_series(None if scheduler is None else scheduler.preemption)


def _preemption_series(preemption: Preemption | None) -> Iterable[Metric]:
    counts = PreemptionCounts() if preemption is None else preemption.counts
    yield _counter(
        "orchestration_tasks_preempted",
        "Tickets that made room for more urgent ones",
        ["preempted_priority", "preemptor_priority"],
        counts.made_room,
    )
    yield _counter(
        "orchestration_preemption_failures",
        "Tickets that could not make room, or whose worker did not stop in time",
        ["reason"],
        {(reason,): count for reason, count in counts.failed.items()},
    )
    yield _histogram(
        "orchestration_preemption_duration_seconds",
        "How long workers took to stop what they were told to stop",
        None if preemption is None else counts.stopping,
    )
    active = GaugeMetricFamily("orchestration_active_preemptions", "Workers that are being told to stop", labels=[])
    if preemption is not None:
        active.add_metric([], preemption.active)
    yield active


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _histogram(name: str, text: str, tally: Tally | None) -> Metric:
    family = HistogramMetricFamily(name, text, labels=[])
    if tally is not None:
        les = [*(floatToGoString(bound) for bound in tally.bounds), "+Inf"]  # type: ignore[no-untyped-call]
        buckets = [(le, float(count)) for le, count in zip(les, accumulate(tally.counts), strict=True)]
        family.add_metric([], buckets, tally.total)
    return family
