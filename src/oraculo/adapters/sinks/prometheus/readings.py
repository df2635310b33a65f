"""Series that are read when they are scraped: what stands, not what happened. Nothing stays that is no longer so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from oraculo.adapters.sinks.prometheus.policies import policy_series
from oraculo.adapters.sinks.prometheus.prediction_series import prediction_series
from oraculo.adapters.sinks.prometheus.request_series import request_series
from oraculo.adapters.sinks.prometheus.scheduler_series import scheduler_series
from oraculo.adapters.sinks.prometheus.sla_series import sla_series
from oraculo.adapters.sinks.prometheus.trail_series import trail_series
from oraculo.ports.broker import Broker
from oraculo.ports.broker_group import group_of
from oraculo.ports.clock import Clock
from oraculo.ports.engine import EngineStatus
from oraculo.runtime.breakers import BreakerBook
from oraculo.runtime.consumer import QueueConsumer
from oraculo.runtime.durations.learning import Durations
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.probes import QUEUE as PROBES
from oraculo.runtime.probes import Probe, Prober
from oraculo.runtime.project import Projection
from oraculo.runtime.queue_history import QueueHistory
from oraculo.runtime.queue_status import QueueStanding
from oraculo.runtime.queue_traffic import QueueTraffic
from oraculo.runtime.requests import RequestIntake
from oraculo.runtime.retention import RetentionRounds
from oraculo.runtime.sla.monitor import SlaMonitor
from oraculo.runtime.trails import Trails
from oraculo.runtime.workers import RegistryCounts

KAFKA = "kafka"
Counts = Callable[[], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Sources:
    """The parts of a running process that are asked when metrics are scraped."""

    status: Callable[[], EngineStatus]
    clock: Clock
    broker: Broker
    leases: HttpLeases
    consumers: Sequence[QueueConsumer]
    prober: Prober | None
    requests: RequestIntake
    projections: Sequence[Projection]


_REGISTRY_TEXTS = {
    "registered": "Workers that registered in this process",
    "deregistered": "Workers that said goodbye",
    "heartbeats": "Heartbeats that this process took",
    "lost": "Workers whose lease ended",
}


class Readings:
    """`sources` are there once the process runs; `dead` is what the last look at the store found."""

    def __init__(self) -> None:
        self.sources: Sources | None = None
        self.mongodb: Any = None
        self.topics: Any = None
        self.ticket_webhooks: Counts = dict
        self.durations: Durations | None = None
        self.trails: Trails | None = None
        self.sla: SlaMonitor | None = None
        self.policies: Policies | None = None
        self.dead: Mapping[str, int] = {}
        self.queues: Callable[[], Sequence[QueueStanding]] = tuple
        self.traffic = QueueTraffic()
        self.history = QueueHistory()
        self.log_lines: Counts = dict
        self.spans: Counts = dict
        self.breakers: BreakerBook | None = None
        self.retention: RetentionRounds | None = None
        self.remaining: Callable[[], Mapping[str, float]] = dict

    def look_ahead(self, durations: Durations | None, sla: SlaMonitor | None, trails: Trails | None) -> None:
        """Read what looks ahead, as far as it is on."""
        self.durations, self.sla, self.trails = durations, sla, trails

    def collect(self) -> Iterable[Metric]:
        yield from self._engine()
        yield from self._intakes()
        yield from self._queues()
        yield from self._brokers()
        yield from self._kafka()
        yield from request_series(None if self.sources is None else self.sources.requests)
        yield from self._projections()
        yield from self._breakers()
        yield from self._mongodb()
        yield from self._topics()
        yield from prediction_series(self.durations)
        yield from trail_series(self.trails)
        yield from sla_series(self.sla)
        yield from policy_series(self.policies)
        yield from scheduler_series(None if self.sources is None else self.sources.leases.scheduler)
        yield _counter("orchestration_log_lines", "Lines logged", ["level"], _keyed(self.log_lines()))
        yield _counter("orchestration_spans", "Spans, by what became of them", ["resultado"], _keyed(self.spans()))

    def _engine(self) -> Iterable[Metric]:
        now = self._engine_now()
        yield _gauge("orchestration_workflows_active", "Orchestrations that have not ended", now.get("open"))
        yield _gauge("orchestration_outbox_messages", "Messages owed to the broker", now.get("waiting"))
        yield _gauge("orchestration_outbox_oldest_seconds", "How long the oldest message is owed", now.get("age"))
        yield _gauge("orchestration_leases", "Messages leased to HTTP workers", now.get("leases"))
        yield _gauge("orchestration_http_workers", "Workers over HTTP seen lately", now.get("http_workers"))
        yield from self._registry()
        yield _gauge("orchestration_store_up", "1: the last transaction went through", now.get("store_up"))
        paused = now.get("paused")
        yield _gauge("orchestration_orders_paused", "Orders that wait because their destination is paused", paused)
        held = now.get("held_back")
        yield _gauge(
            "orchestration_tickets_held_back",
            "Tickets of Fluxo C, and of plans with priorities, that wait for room under the ceiling",
            held,
        )
        yield _gauge_of(
            "orchestration_sla_remaining_seconds",
            "Time that the most urgent open orchestration of a risk band has left; negative when it is late",
            ["risk_band"],
            {(band,): seconds for band, seconds in self.remaining().items()},
        )
        yield _gauge_of(
            "orchestration_dead_letters_waiting", "Dead letters that wait for an operator", ["fila"], _keyed(self.dead)
        )

    def _engine_now(self) -> Mapping[str, float]:
        """Return what the engine and the leases tell; nothing before the process runs."""
        if self.sources is None:
            return {}
        status, leases = self.sources.status(), self.sources.leases
        oldest = status.effects.oldest
        age = 0.0 if oldest is None else (self.sources.clock.now() - oldest).total_seconds()
        return {
            "open": status.open,
            "waiting": status.effects.waiting,
            "age": max(0.0, age),
            "held_back": status.effects.held_back,
            "paused": status.effects.paused,
            "store_up": int(status.store_failing_since is None),
            "leases": len(leases),
            "http_workers": leases.over_http,
        }

    def _breakers(self) -> Iterable[Metric]:
        """No series where they are off, nor for a queue that never failed."""
        book = self.breakers
        known = () if book is None else book.all
        standing: dict[tuple[str, ...], float] = {(one.queue,): int(one.is_open) for one in known}
        yield _gauge_of("orchestration_breaker_open", "1: orders for this queue wait, it failed", ["fila"], standing)
        opened: dict[tuple[str, ...], float] = {} if book is None else {(): book.opened}
        yield _counter("orchestration_breakers_opened", "Breakers that this process has opened", [], opened)
        forgotten: dict[tuple[str, ...], float] = {} if self.retention is None else {(): self.retention.forgotten}
        yield _counter(
            "orchestration_runs_forgotten", "Ended orchestrations that retention has forgotten", [], forgotten
        )

    def _registry(self) -> Iterable[Metric]:
        """Workers that registered, as far as this process had to do with them."""
        book = None if self.sources is None else self.sources.leases.registry
        counts = RegistryCounts() if book is None else book.counts
        for what, text in _REGISTRY_TEXTS.items():
            yield _counter(f"orchestration_workers_{what}", text, [], {(): getattr(counts, what)})
        moved = "Tickets that were withdrawn from lost workers and went elsewhere"
        yield _counter("orchestration_tickets_withdrawn", moved, [], {(): counts.withdrawn})

    def _intakes(self) -> Iterable[Metric]:
        """received = the verdicts of `orchestration_messages_total` + returned."""
        consumers = self._consumers()
        yield _counter(
            "orchestration_messages_received",
            "Messages taken from a broker",
            ["fila"],
            {(consumer.queue,): consumer.taken() for consumer in consumers},
        )
        yield _counter(
            "orchestration_messages_returned",
            "Messages given back to the broker, because nothing could be done with them yet",
            ["fila"],
            {(consumer.queue,): consumer.returned for consumer in consumers},
        )

    def _consumers(self) -> Sequence[QueueConsumer]:
        return () if self.sources is None else self.sources.consumers

    def _probes(self) -> Mapping[str, Probe]:
        prober = None if self.sources is None else self.sources.prober
        return {} if prober is None else prober.found

    def _members(self) -> Mapping[str, Any]:
        return {} if self.sources is None else group_of(self.sources.broker).members

    def _queues(self) -> Iterable[Metric]:
        found = self.queues() if self.sources is not None else ()

        def of_each(name: str, text: str, value: Callable[[QueueStanding], float | None]) -> Metric:
            return _gauge_of(name, text, ["fila"], {(one.queue,): value(one) or 0 for one in found})

        yield of_each("orchestration_queue_depth", "Messages waiting in a queue", lambda one: one.waiting)
        yield of_each(
            "orchestration_queue_oldest_seconds",
            "How long the oldest message of a queue waits",
            lambda one: one.oldest_s,
        )
        yield of_each(
            "orchestration_queue_consumers",
            "Who consumes a queue, as its broker says; where it cannot, workers seen within a minute",
            lambda one: one.consumers,
        )
        yield _counter(
            "orchestration_queue_sent",
            "Orders for workers that a broker has confirmed",
            ["fila"],
            _keyed(self.traffic.sent.total),
        )
        yield _counter(
            "orchestration_queue_answered",
            "Answers of workers that counted",
            ["fila"],
            _keyed(self.traffic.answered.total),
        )

    def _brokers(self) -> Iterable[Metric]:
        probes, members = self._probes(), self._members()
        group = None if self.sources is None else group_of(self.sources.broker)
        active = {group.active, *group.apart} if group is not None else set()

        def one(name: str, text: str, values: Mapping[str, float]) -> Metric:
            return _gauge_of(name, text, ["broker"], _keyed(values))

        yield one(
            "orchestration_broker_up",
            "1: the last probe of the broker went through",
            {name: int(bool(probe.ok)) for name, probe in probes.items()},
        )
        yield one(
            "orchestration_broker_active",
            "1: messages are published there",
            {name: int(name in active) for name in probes},
        )
        yield one(
            "orchestration_broker_probe_seconds",
            "Round trip of the last probe",
            {name: probe.round_trip_s for name, probe in probes.items() if probe.round_trip_s is not None},
        )
        yield _gauge_of(
            "orchestration_broker_durability",
            "1: what the broker promises of a message that it confirmed",
            ["broker", "classe"],
            {(name, probe.durability): 1 for name, probe in probes.items() if probe.durability is not None},
        )
        yield one(
            "orchestration_broker_reconnects",
            "Connections made anew since the start",
            {name: members[name].health().reconnects for name in probes},
        )
        yield _counter(
            "orchestration_broker_resets",
            "Connections made anew because nothing came through: a probe was lost, or a consumer had fallen silent",
            ["broker"],
            {(name,): probe.resets for name, probe in probes.items()},
        )

    def _kafka(self) -> Iterable[Metric]:
        """Probes do not count."""
        found = [(name, member) for name, member in self._members().items() if member.scheme == KAFKA]
        consumed: dict[tuple[str, ...], float] = {}
        produced, lag, errors = dict(consumed), dict(consumed), dict(consumed)
        for name, member in found:
            consumed[()] = consumed.get((), 0) + sum(n for queue, n in member.consumed.items() if queue != PROBES)
            produced[()] = produced.get((), 0) + sum(n for queue, n in member.produced.items() if queue != PROBES)
            probe = self._probes().get(name)
            ours = [probe.backlogs.get(consumer.queue) for consumer in self._consumers()] if probe else []
            lag[()] = lag.get((), 0) + sum(backlog.waiting or 0 for backlog in ours if backlog is not None)
            for cause, count in member.errors.items():
                errors[cause] = errors.get(cause, 0) + count
        yield _counter("orchestration_kafka_messages_consumed", "Messages taken from Kafka", [], consumed)
        yield _counter("orchestration_kafka_messages_produced", "Messages that Kafka confirmed", [], produced)
        yield _gauge_of("orchestration_kafka_consumer_lag", "Messages that wait in Kafka for the orchestrator", [], lag)
        yield _counter("orchestration_kafka_errors", "Failures of Kafka", ["operation", "error_type"], errors)

    def _topics(self) -> Iterable[Metric]:
        sink = self.topics
        told: dict[tuple[str, ...], float] = {}
        for status in ("published", "refused") if sink else ():
            told |= {(record, status): count for record, count in getattr(sink, status).items()}
        yield _counter(
            "orchestration_topic_records",
            "Records of Fluxo C that were told on topics: telemetry, incidents, requests for approval",
            ["record", "status"],
            told,
        )
        yield _counter(
            "orchestration_ticket_webhooks",
            "Notices to addresses in metadata of tickets: delivered, retry (given up), refused, missed (left alone)",
            ["resultado"],
            _keyed(self.ticket_webhooks()),
        )

    def _mongodb(self) -> Iterable[Metric]:
        writer = self.mongodb
        yield _gauge_of(
            "mongodb_pool_size",
            "Connections to MongoDB: those there are, and those there may be",
            ["pool_type"],
            {("current",): writer.pool.size, ("max",): writer.max_pool} if writer else {},
        )
        yield _gauge("mongodb_pool_checkedout", "Connections to MongoDB in use", writer and writer.pool.checked_out)
        yield _gauge(
            "mongodb_circuit_breaker_state",
            "1: MongoDB has not answered five times in a row; it is still tried now and then",
            writer and int(writer.open),
        )
        yield _counter(
            "mongodb_persistence_errors",
            "Writes that MongoDB did not take",
            ["collection", "operation", "error_type"],
            dict(writer.errors) if writer else {},
        )
        yield _counter(
            "mongodb_persistence_fail_open",
            "Documents that MongoDB refused for good, in collections that may lack some",
            ["collection"],
            _keyed(writer.left_out) if writer else {},
        )
        yield _counter(
            "mongodb_index_validation",
            "Indexes that were looked for at the first write: present, created, or in conflict with another",
            ["collection", "status"],
            dict(writer.indexes) if writer else {},
        )

    def _projections(self) -> Iterable[Metric]:
        """Read the projections that this process runs, so that each is counted once."""
        projections = () if self.sources is None else self.sources.projections
        ours = [one for one in projections if one.active]

        def of(value: Callable[[Projection], float]) -> dict[tuple[str, ...], float]:
            return {(one.name,): value(one) for one in ours}

        labels = ["projection"]
        yield _gauge_of(
            "oraculo_projection_lag",
            "Steps of the journal that a projection has not read yet",
            labels,
            of(lambda one: one.lag.steps),
        )
        yield _gauge_of(
            "oraculo_projection_age_seconds", "How long the oldest of them waits", labels, of(lambda one: one.age())
        )
        yield _counter(
            "oraculo_projection_steps",
            "Steps of the journal that a projection has read",
            labels,
            of(lambda one: one.recorded),
        )
        yield _counter(
            "oraculo_projection_failures",
            "Times that a projection could not go on",
            labels,
            of(lambda one: one.failures),
        )


def _keyed(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(name,): value for name, value in values.items()}


def _counter(name: str, text: str, labels: list[str], values: Mapping[tuple[str, ...], float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _gauge_of(name: str, text: str, labels: list[str], values: Mapping[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _gauge(name: str, text: str, value: float | None) -> Metric:
    return _gauge_of(name, text, [], {} if value is None else {(): value})
