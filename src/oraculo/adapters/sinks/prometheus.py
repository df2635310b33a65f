"""Metrics: readings of the journal, so that every engine gives the same ones.

Names are those of the seeds where they name one. No label ever holds an id.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily

from oraculo.core import events as ev
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.ports.store import Batch

WORKFLOW_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)
MOST_CAUSES = 500  # series of dead letters
FAST_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


_UNCOUNTED = frozenset((ev.TicketsDispatched, ev.FanInClosed, ev.Woken, ev.CancelRequested, ev.NoticeSent))


class _Received:
    """What the intakes took from the brokers: received = the verdicts of `orchestration_messages_total` + returned."""

    def __init__(self) -> None:
        self.intakes: Sequence[Any] = ()

    def collect(self) -> Iterable[CounterMetricFamily]:
        received = CounterMetricFamily(
            "orchestration_messages_received", "Messages taken from a broker", labels=["fila"]
        )
        returned = CounterMetricFamily(
            "orchestration_messages_returned",
            "Messages given back to the broker, because nothing could be done with them yet",
            labels=["fila"],
        )
        for intake in self.intakes:
            received.add_metric([intake.queue], intake.taken())
            returned.add_metric([intake.queue], intake.returned)
        return [received, returned]


class Metrics:
    """One registry per process. `saw` is called after each commit; gauges are read when somebody scrapes."""

    def __init__(self) -> None:
        self._causes: set[tuple[str, str]] = set()
        self._depths: Any = None
        self._engine: Any = None
        self._look: Callable[[], None] = lambda: None
        self.registry = r = CollectorRegistry()
        self._received = _Received()
        r.register(self._received)
        self.started = Counter("orchestration_workflows_started_total", "Orchestrations started", registry=r)
        self.completed = Counter(
            "orchestration_workflows_completed_total", "Orchestrations that ended", ["status"], registry=r
        )
        self.duration = Histogram(
            "orchestration_workflow_duration_seconds",
            "From acceptance to the end",
            ["status"],
            buckets=WORKFLOW_BUCKETS,
            registry=r,
        )
        self.active = Gauge("orchestration_workflows_active", "Orchestrations that have not ended", registry=r)
        self.generated = Counter(
            "orchestration_tickets_generated_total", "Tickets made from plans", ["task_type"], registry=r
        )
        self.published = Counter(
            "orchestration_tickets_published_total", "Ticket messages that a broker confirmed", registry=r
        )
        self.tickets = Counter(
            "orchestration_tickets_completed_total", "Tickets that closed", ["status", "task_type"], registry=r
        )
        self.generation = Histogram(
            "orchestration_ticket_generation_duration_seconds",
            "From the release of tickets to the record of the broker's confirmation of their first messages",
            buckets=FAST_BUCKETS,
            registry=r,
        )
        self.retries = Counter(
            "orchestration_retries_total",
            "Attempts that failed and are followed by another",
            ["task_type", "causa"],
            registry=r,
        )
        self.late = Counter("orchestration_late_answers_total", "Answers that came too late to count", registry=r)
        self.messages = Counter(
            "orchestration_messages_total",
            "Messages received, by what became of them",
            ["fila", "veredito"],
            registry=r,
        )
        self.dead = Counter("orchestration_dead_letters_total", "Messages quarantined", ["fila", "motivo"], registry=r)
        self.notices = Counter(
            "orchestration_notifications_total", "Notices, by how they ended", ["resultado"], registry=r
        )
        self.steps = Counter("orchestration_journal_events_total", "Events written to the journal", registry=r)
        self.commits = Histogram(
            "orchestration_commit_steps", "Steps in one transaction", buckets=(1, 4, 16, 64, 256, 1024), registry=r
        )
        self.unpublished = Gauge("orchestration_outbox_messages", "Messages owed to the broker", registry=r)
        self.leases = Gauge("orchestration_leases", "Messages leased to HTTP workers", registry=r)
        self.depth = Gauge("orchestration_queue_depth", "Messages waiting in a queue", ["fila"], registry=r)
        self.oldest = Gauge(
            "orchestration_queue_oldest_seconds", "How long the oldest message of a queue waits", ["fila"], registry=r
        )
        self.broker_up = Gauge(
            "orchestration_broker_up", "1: the last probe of the broker went through", ["broker"], registry=r
        )
        self.broker_active = Gauge(
            "orchestration_broker_active", "1: messages are published there", ["broker"], registry=r
        )
        self.broker_probe = Gauge(
            "orchestration_broker_probe_seconds", "Round trip of the last probe", ["broker"], registry=r
        )
        self.broker_durability = Gauge(
            "orchestration_broker_durability",
            "1: what the broker promises of a message that it confirmed",
            ["broker", "classe"],
            registry=r,
        )
        self.broker_reconnects = Gauge(
            "orchestration_broker_reconnects", "Connections made anew since the start", ["broker"], registry=r
        )
        self.switches = Counter(
            "orchestration_broker_switches_total",
            "Times that publishing went from one broker to another",
            ["de", "para"],
            registry=r,
        )

    def watch(self, engine: Any) -> None:
        """Gauges that are read from the engine when somebody asks."""
        self._look = engine.observe
        self._engine = engine
        self._received.intakes = engine.intakes
        self.active.set_function(lambda: engine.open)
        self.unpublished.set_function(lambda: engine.performer.waiting)
        self.leases.set_function(lambda: len(engine.gateway))
        depths = getattr(engine.broker, "depths", None)
        self._depths = depths

    def saw(self, batch: Batch, steps: Sequence[Step]) -> None:
        tally: Tally[tuple[Any, ...]] = Tally()
        for step in steps:
            for event in step.events:
                if type(event) not in _UNCOUNTED:
                    self._count(step, event, tally)
        self.steps.inc(sum(len(step.events) for step in steps))
        if steps:
            self.commits.observe(len(steps))
        for (counter, *labels), count in tally.items():
            (counter.labels(*labels) if labels else counter).inc(count)
        for (queue, verdict), count in batch.counts.items():
            self.messages.labels(queue, verdict).inc(count)
        for dead in batch.dead:
            self.dead.labels(*self._known(dead.queue, dead.reason)).inc()

    def _known(self, queue: str, reason: str) -> tuple[str, str]:
        """Whoever writes to a dead-letter queue names both; more than a number of them share one series."""
        if (queue, reason) not in self._causes and len(self._causes) >= MOST_CAUSES:
            return ("outras", "outros")
        self._causes.add((queue, reason))
        return (queue, reason)

    def _count(self, step: Step, event: ev.Event, tally: Tally[tuple[Any, ...]]) -> None:
        state = step.state
        tasks = state.plan.tasks
        match event:
            case ev.TicketConcluded(position):
                tally[self.tickets, "concluida", tasks[position].kind.value] += 1
                self._overtaken(state, position, tally)
            case ev.DispatchConfirmed(confirmed):
                tally[(self.published,)] += len(confirmed)
                position, attempt = confirmed[0]
                since = state.tickets[position].dispatched_at
                if attempt == 1 and since is not None:
                    self.generation.observe(max(0.0, (step.at - since).total_seconds()))
            case ev.OrchestrationStarted(plan=plan):
                tally[(self.started,)] += 1
                for kind in {task.kind for task in plan.tasks}:
                    tally[self.generated, kind.value] += sum(1 for task in plan.tasks if task.kind is kind)
            case ev.OrchestrationClosed(status):
                tally[self.completed, status.value] += 1
                self.duration.labels(status.value).observe(max(0.0, (step.at - state.started_at).total_seconds()))
            case ev.AttemptFailed(position, attempt, cause):
                tally[self.retries, tasks[position].kind.value, cause.value] += 1
                if state.tickets[position].attempt == attempt:
                    self._overtaken(state, position, tally)
            case ev.TicketFailed(position, _attempt, status):
                tally[self.tickets, status.value, tasks[position].kind.value] += 1
                self._overtaken(state, position, tally)
            case ev.TicketsClosed(positions, status):
                for position in positions:
                    tally[self.tickets, status.value, tasks[position].kind.value] += 1
            case ev.LateAnswerKept():
                tally[(self.late,)] += 1
            case ev.NoticeDelivered():
                tally[self.notices, "entregue"] += 1
            case ev.NoticeFailed():
                tally[self.notices, "falhou"] += 1
            case ev.NoticeGivenUp():
                tally[self.notices, "desistiu"] += 1
            case _:
                pass

    def _overtaken(self, state: Orchestration, position: int, tally: Tally[tuple[Any, ...]]) -> None:
        """An answer that came before the broker's confirmation was recorded is as good as the confirmation."""
        if state.tickets[position].started_at is None:
            tally[(self.published,)] += 1

    def exposition(self) -> bytes:
        self._look()
        if self._depths is not None:
            for queue, (waiting, _taken) in self._depths().items():
                self.depth.labels(queue).set(waiting)
        if self._engine is not None and self._engine.prober is not None:
            self._brokers(self._engine.prober, self._engine.broker)
        return generate_latest(self.registry)

    def _brokers(self, prober: Any, broker: Any) -> None:
        members = getattr(broker, "members", {broker.scheme: broker})
        active = getattr(broker, "active", broker.scheme)
        depths: dict[str, int] = {}
        oldest: dict[str, float] = {}
        self.broker_durability.clear()
        for name, probe in prober.found.items():
            self.broker_up.labels(name).set(1 if probe.ok else 0)
            self.broker_active.labels(name).set(1 if name == active else 0)
            self.broker_reconnects.labels(name).set(members[name].health().reconnects)
            if probe.round_trip_s is not None:
                self.broker_probe.labels(name).set(probe.round_trip_s)
            if probe.durability is not None:
                self.broker_durability.labels(name, probe.durability).set(1)
            for queue, backlog in probe.backlogs.items():
                depths[queue] = depths.get(queue, 0) + (backlog.waiting or 0)
                oldest[queue] = max(oldest.get(queue, 0.0), backlog.oldest_s or 0.0)
        for queue, waiting in depths.items():
            self.depth.labels(queue).set(waiting)
            self.oldest.labels(queue).set(oldest[queue])

    def switched(self, source: str, target: str) -> None:
        self.switches.labels(source, target).inc()

    def names(self) -> Iterable[str]:
        return sorted(
            metric.name + ("_total" if metric.type == "counter" else "") for metric in self.registry.collect()
        )
