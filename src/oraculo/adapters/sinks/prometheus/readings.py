"""Series that are read when somebody scrapes: what stands, not what happened. Nothing stays that is no longer so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from oraculo.adapters.sinks.prometheus.families import NO_BAND
from oraculo.runtime.probes import QUEUE as PROBES

KAFKA = "kafka"
Counts = Callable[[], Mapping[str, int]]


class Readings:
    """`engine` and `reception` are there once the process runs; `dead` is what the last look at the store found."""

    def __init__(self) -> None:
        self.engine: Any = None
        self.reception: Any = None
        self.projections: Sequence[Any] = ()
        self.mongodb: Any = None
        self.topics: Any = None
        self.dead: Mapping[str, int] = {}
        self.log_lines: Counts = dict
        self.spans: Counts = dict
        self.remaining: Callable[[], float | None] = lambda: None

    def collect(self) -> Iterable[Metric]:
        yield from self._engine()
        yield from self._intakes()
        yield from self._queues()
        yield from self._brokers()
        yield from self._kafka()
        yield from self._requests()
        yield from self._projections()
        yield from self._mongodb()
        yield from self._topics()
        yield _counter("orchestration_log_lines", "Lines logged", ["level"], _keyed(self.log_lines()))
        yield _counter("orchestration_spans", "Spans, by what became of them", ["resultado"], _keyed(self.spans()))

    def _engine(self) -> Iterable[Metric]:
        engine = self.engine
        yield _gauge("orchestration_workflows_active", "Orchestrations that have not ended", engine and engine.open)
        performer = engine and engine.performer
        yield _gauge("orchestration_outbox_messages", "Messages owed to the broker", performer and performer.waiting)
        oldest = performer and performer.oldest
        age = 0.0 if oldest is None else max(0.0, (engine.clock.now() - oldest).total_seconds())
        yield _gauge("orchestration_outbox_oldest_seconds", "How long the oldest message is owed", performer and age)
        yield _gauge("orchestration_leases", "Messages leased to HTTP workers", engine and len(engine.gateway))
        yield _gauge("orchestration_http_workers", "Workers over HTTP seen lately", engine and engine.gateway.over_http)
        works = engine and int(engine.store_failing_since is None)
        yield _gauge("orchestration_store_up", "1: the last transaction went through", works)
        least = self.remaining()
        yield _gauge_of(
            "orchestration_sla_remaining_seconds",
            "Time that the most urgent open orchestration has left; negative when it is late",
            ["risk_band"],
            {} if least is None else {(NO_BAND,): least},
        )
        yield _gauge_of(
            "orchestration_dead_letters_waiting", "Dead letters that wait for an operator", ["fila"], _keyed(self.dead)
        )

    def _intakes(self) -> Iterable[Metric]:
        """received = the verdicts of `orchestration_messages_total` + returned."""
        intakes = self.engine.intakes if self.engine else ()
        yield _counter(
            "orchestration_messages_received",
            "Messages taken from a broker",
            ["fila"],
            {(intake.queue,): intake.taken() for intake in intakes},
        )
        yield _counter(
            "orchestration_messages_returned",
            "Messages given back to the broker, because nothing could be done with them yet",
            ["fila"],
            {(intake.queue,): intake.returned for intake in intakes},
        )

    def _probes(self) -> Mapping[str, Any]:
        prober = self.engine.prober if self.engine else None
        return {} if prober is None else prober.found

    def _members(self) -> Mapping[str, Any]:
        broker = self.engine.broker if self.engine else None
        return {} if broker is None else getattr(broker, "members", {broker.scheme: broker})

    def _queues(self) -> Iterable[Metric]:
        depths: dict[tuple[str, ...], float] = {}
        oldest: dict[tuple[str, ...], float] = {}
        in_process = getattr(self.engine.broker, "depths", None) if self.engine else None
        if in_process is not None:
            depths = {(queue,): waiting for queue, (waiting, _taken) in in_process().items()}
        for probe in self._probes().values():
            for queue, backlog in probe.backlogs.items():
                depths[queue,] = depths.get((queue,), 0) + (backlog.waiting or 0)
                oldest[queue,] = max(oldest.get((queue,), 0.0), backlog.oldest_s or 0.0)
        yield _gauge_of("orchestration_queue_depth", "Messages waiting in a queue", ["fila"], depths)
        yield _gauge_of(
            "orchestration_queue_oldest_seconds", "How long the oldest message of a queue waits", ["fila"], oldest
        )

    def _brokers(self) -> Iterable[Metric]:
        probes, members = self._probes(), self._members()
        broker = self.engine.broker if self.engine else None
        active = {getattr(broker, "active", getattr(broker, "scheme", "")), *getattr(broker, "apart", ())}

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
            ours = [probe.backlogs.get(intake.queue) for intake in self.engine.intakes] if probe else []
            lag[()] = lag.get((), 0) + sum(backlog.waiting or 0 for backlog in ours if backlog is not None)
            for cause, count in member.errors.items():
                errors[cause] = errors.get(cause, 0) + count
        yield _counter("orchestration_kafka_messages_consumed", "Messages taken from Kafka", [], consumed)
        yield _counter("orchestration_kafka_messages_produced", "Messages that Kafka confirmed", [], produced)
        yield _gauge_of("orchestration_kafka_consumer_lag", "Messages that wait in Kafka for the orchestrator", [], lag)
        yield _counter("orchestration_kafka_errors", "Failures of Kafka", ["operation", "error_type"], errors)

    def _requests(self) -> Iterable[Metric]:
        desk = self.reception
        yield _counter(
            "orchestration_plan_validations",
            "Requests that were looked at, by whether they can be planned",
            ["result"],
            _keyed(desk.validations) if desk else {},
        )
        repeated: dict[tuple[str, ...], float] = {("requests",): desk.repeated} if desk else {}
        yield _counter(
            "orchestrator_idempotency_cache_hits",
            "Requests that had been accepted before and got the same answer",
            ["component"],
            repeated,
        )
        unnamed: dict[tuple[str, ...], float] = {(): desk.unnamed} if desk else {}
        yield _counter(
            "neural_hive_orchestrator_correlation_id_missing",
            "Requests without a correlation_id, which were given one",
            [],
            unnamed,
        )

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
        held = self.engine and self.engine.held_back
        yield _gauge("orchestration_tickets_held_back", "Tickets of Fluxo C that wait for room under the ceiling", held)

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
        """Of those that this process looks after, so that each is counted once."""
        ours = [one for one in self.projections if one.active]

        def of(value: Callable[[Any], float]) -> dict[tuple[str, ...], float]:
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
