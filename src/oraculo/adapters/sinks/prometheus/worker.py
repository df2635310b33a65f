"""Metrics of a worker process, with the names of Fluxo C."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from oraculo.adapters.sinks.prometheus.families import MOST_RETRIES, TASK_TYPES, WORKFLOW_BUCKETS
from oraculo.core.vocabulary import Kind

MAX_ERROR_SERIES = 50  # kinds of errors with a series of their own


class WorkerMetrics:
    """`held` says how many orders the worker holds."""

    def __init__(self, held: Callable[[], int]) -> None:
        self._errors: set[str] = set()
        self.registry = r = CollectorRegistry()
        self.taken = Counter("worker_agent_tickets_consumed_total", "Orders taken", ["task_type"], registry=r)
        self.begun = Counter("worker_agent_tickets_processing_total", "Orders begun", ["task_type"], registry=r)
        self.done = Counter("worker_agent_tickets_completed_total", "Orders done", ["task_type"], registry=r)
        self.failed = Counter(
            "worker_agent_tickets_failed_total", "Orders that failed", ["task_type", "error_type"], registry=r
        )
        self.active = Gauge("worker_agent_active_tasks", "Orders that are being worked on", registry=r)
        self.held = Gauge("worker_agent_tickets_in_flight", "Orders that the worker holds", registry=r)
        self.held.set_function(held)
        self.duration = Histogram(
            "worker_agent_task_duration_seconds",
            "How long the function took",
            ["task_type"],
            buckets=WORKFLOW_BUCKETS,
            registry=r,
        )
        self.retries = Counter(
            "worker_agent_task_retries_total", "Orders that are a retry", ["task_type", "attempt"], registry=r
        )
        for kind, family in product(TASK_TYPES, (self.taken, self.begun, self.done, self.duration)):
            family.labels(kind)
        ProcessCollector(registry=r)

    def consumed(self, kind: Kind, count: int) -> None:
        self.taken.labels(kind.value).inc(count)

    def began(self, kind: Kind, attempt: int) -> None:
        self.active.inc()
        self.begun.labels(kind.value).inc()
        if attempt > 1:
            number = str(attempt - 1) if attempt <= MOST_RETRIES else f"{MOST_RETRIES}+"
            self.retries.labels(kind.value, number).inc()

    def ended(self, kind: Kind, seconds: float, error: str | None) -> None:
        """`error` is its code; None when it went well."""
        self.active.dec()
        self.duration.labels(kind.value).observe(seconds)
        if error is None:
            self.done.labels(kind.value).inc()
            return
        if error not in self._errors and len(self._errors) >= MAX_ERROR_SERIES:
            error = "outros"
        self._errors.add(error)
        self.failed.labels(kind.value, error).inc()

    def abandoned(self) -> None:
        """It was begun and given back."""
        self.active.dec()

    def exposition(self) -> bytes:
        return generate_latest(self.registry)
