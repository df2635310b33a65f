"""Every series that counts events of the journal, declared once. Names and labels are those of Fluxo C.

Label values that are known beforehand exist from the start with 0, so that the first event is an increase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter

from oraculo.adapters.sinks.prometheus.distribution import Histogram
from oraculo.core.reuse import RetryFrom
from oraculo.core.vocabulary import RUN_STATUSES, Cause, Kind, RiskBand, Status, UndoCause
from oraculo.wire.names import RESULTS
from oraculo.wire.ticket_tokens import UNAUTHENTICATED

NO_BAND = "none"  # a request has no risk band; a cognitive plan does
PRIORITY = "NORMAL"  # and no priority of its own
TASK_TYPES = (Kind.COLETA.value, Kind.EXECUCAO.value)  # that workers do
WORKFLOW = "workflow"
ENDINGS = tuple(status.value for status in RUN_STATUSES if status.final)
TICKET_ENDINGS = tuple(status for status in ENDINGS if status != Status.PARCIAL)
MOST_RETRIES = 10  # retries beyond share one series, `10+`

WORKFLOW_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)
FAST_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SCORE_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Series(NamedTuple):
    name: str
    type: str
    labels: tuple[str, ...]
    text: str


def described(registry: CollectorRegistry) -> Iterator[Series]:
    """All that can be scraped from a registry."""
    declared = {getattr(one, "_name", ""): getattr(one, "_labelnames", ()) for one in registry._collector_to_names}
    for metric in registry.collect():
        labels = declared.get(metric.name, getattr(metric, "_labelnames", ()))
        suffix = "_total" if metric.type == "counter" else ""
        yield Series(metric.name + suffix, metric.type, tuple(labels), metric.documentation)


_ENDINGS_WITHOUT_BAND = tuple((status, NO_BAND) for status in ENDINGS)
_TICKETS = tuple(product(TICKET_ENDINGS, TASK_TYPES))
_UNDONE = tuple((UndoCause.TASK_FAILED.value, status) for status in TICKET_ENDINGS)


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """A counter as it is declared; an instance of `Families` has the counter itself under the same name."""

    name: str
    text: str
    labels: tuple[str, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()  # label values that exist from the start

    def __get__(self, families: Families, _owner: type[Families]) -> Counter:
        raise AttributeError(self.name)

    def made(self, registry: CollectorRegistry) -> Counter:
        return Counter(self.name, self.text, self.labels, registry=registry)


@dataclass(frozen=True, slots=True)
class HistogramSeries:
    """A histogram as it is declared; an instance of `Families` has the histogram itself under the same name."""

    name: str
    text: str
    buckets: tuple[float, ...]
    labels: tuple[str, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()

    def __get__(self, families: Families, _owner: type[Families]) -> Histogram:
        raise AttributeError(self.name)

    def made(self, registry: CollectorRegistry) -> Histogram:
        made = Histogram(self.name, self.text, self.buckets, self.labels)
        registry.register(made)
        return made


class Families:
    """The table of series: each is declared here once, and made in this order for one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        for attribute, series in vars(Families).items():
            if isinstance(series, CounterSeries | HistogramSeries):
                made = series.made(registry)
                for values in series.known:
                    made.labels(*values)
                vars(self)[attribute] = made

    started = CounterSeries(
        "orchestration_workflows_started_total",
        "Orchestrations started",
        ("status", "risk_band"),
        (("started", NO_BAND),),
    )
    completed = CounterSeries(
        "orchestration_workflows_completed_total",
        "Orchestrations that ended",
        ("status", "risk_band"),
        _ENDINGS_WITHOUT_BAND,
    )
    duration = HistogramSeries(
        "orchestration_workflow_duration_seconds",
        "From acceptance to the end: the cycle time",
        WORKFLOW_BUCKETS,
        ("status", "risk_band"),
        _ENDINGS_WITHOUT_BAND,
    )
    generated = CounterSeries(
        "orchestration_tickets_generated_total",
        "Tickets made from plans",
        ("task_type", "risk_band", "priority"),
        tuple((kind, NO_BAND, PRIORITY) for kind in TASK_TYPES),
    )
    priority_score = HistogramSeries(
        "orchestration_scheduler_priority_score",
        "How urgent tickets of Fluxo C were when a broker had them",
        SCORE_BUCKETS,
        ("risk_band",),
        tuple((band.value,) for band in RiskBand),
    )
    published = CounterSeries(
        "orchestration_tickets_published_total",
        "Ticket messages: confirmed by a broker, or refused for good",
        ("status",),
        (("confirmed",), ("refused",)),
    )
    tickets = CounterSeries(
        "orchestration_tickets_completed_total", "Tickets that closed", ("status", "task_type"), _TICKETS
    )
    ticket_duration = HistogramSeries(
        "orchestration_ticket_duration_seconds",
        "From the release of a ticket to its end, all its attempts together",
        WORKFLOW_BUCKETS,
        ("status", "task_type"),
        _TICKETS,
    )
    generation = HistogramSeries(
        "orchestration_ticket_generation_duration_seconds",
        "From the release of tickets to the record of the broker's confirmation of their first messages",
        FAST_BUCKETS,
    )
    retries = CounterSeries(
        "orchestration_retries_total",
        "Attempts that failed and are followed by another; `retry_attempt` is the number of the retry",
        ("task_type", "retry_attempt"),
        tuple(product(TASK_TYPES, ("1", "2"))),
    )
    attempt_failures = CounterSeries(
        "orchestration_attempt_failures_total",
        "Attempts that failed, the last ones too",
        ("task_type", "causa"),
        tuple(product(TASK_TYPES, tuple(Cause))),
    )
    violations = CounterSeries(
        "orchestration_sla_violations_total",
        "Tickets that were out of time: their last attempt, or their orchestration",
        ("risk_band", "task_type"),
        tuple((NO_BAND, kind) for kind in TASK_TYPES),
    )
    compensations = CounterSeries(
        "orchestration_compensations_triggered_total",
        "Plans whose work is being undone",
        ("reason",),
        ((UndoCause.TASK_FAILED.value,),),
    )
    undone = CounterSeries(
        "orchestration_compensations_executed_total",
        "Tickets that undo another, as they ended",
        ("reason", "status"),
        _UNDONE,
    )
    undo_duration = HistogramSeries(
        "orchestration_compensation_duration_seconds",
        "From the release of a ticket that undoes another to its end",
        WORKFLOW_BUCKETS,
        ("reason", "status"),
        _UNDONE,
    )
    queries = CounterSeries(
        "orchestration_workflow_query_total",
        "Questions asked of workflows of Fluxo C",
        ("query_name", "status"),
        (("get_status", "success"), ("get_tickets", "success")),
    )
    approaching = CounterSeries(
        "orchestration_deadline_approaching_total", "Orchestrations that were open when 80 % of their time had passed"
    )
    lateness = HistogramSeries(
        "orchestration_deadline_lateness_seconds",
        "From a deadline to the record that it passed",
        FAST_BUCKETS,
        ("task_type",),
        tuple((kind,) for kind in (*TASK_TYPES, WORKFLOW)),
    )
    retried = CounterSeries(
        "orchestration_runs_retried_total",
        "Runs that try another one again, by what they do again",
        ("de",),
        tuple((mode.value,) for mode in RetryFrom),
    )
    reused = CounterSeries("orchestration_results_reused_total", "Results that a retry took over from an earlier run")
    late = CounterSeries("orchestration_late_answers_total", "Answers that came too late to count")
    conflicts = CounterSeries(
        "orchestration_conflicting_answers_total",
        "Second answers to an attempt that said something else than the first",
    )
    duplicates = CounterSeries(
        "orchestrator_duplicates_detected_total",
        "Messages that had come before",
        ("component",),
        (("requests",), ("results",)),
    )
    messages = CounterSeries(
        "orchestration_messages_total", "Messages received, by what became of them", ("fila", "veredito")
    )
    dead = CounterSeries(
        "orchestration_dead_letters_total",
        "Messages quarantined",
        ("fila", "motivo"),
        ((RESULTS, UNAUTHENTICATED),),  # there from the start, so that the alert sees the first one
    )
    notices = CounterSeries(
        "orchestration_notifications_total",
        "Notices, by how they ended",
        ("resultado",),
        (("entregue",), ("falhou",), ("desistiu",)),
    )
    events = CounterSeries("orchestration_journal_events_total", "Events written to the journal")
    commits = HistogramSeries("orchestration_commit_steps", "Steps in one transaction", (1, 4, 16, 64, 256, 1024))
    lag = HistogramSeries(
        "orchestration_event_loop_lag_seconds",
        "How much later than it should the event loop came to a timer",
        LAG_BUCKETS,
    )
    mongodb = HistogramSeries(
        "mongodb_persistence_duration_seconds",
        "How long MongoDB took to answer",
        FAST_BUCKETS,
        ("collection", "operation"),
    )
    schedule_instants = CounterSeries(
        "orchestration_schedule_instants_total",
        "Instants of schedules by what became of them; missed counts each time that some were too late",
        ("outcome",),
        (("fired",), ("skipped",), ("missed",), ("failed",)),
    )
    switches = CounterSeries(
        "orchestration_broker_switches_total", "Times that publishing went from one broker to another", ("de", "para")
    )
