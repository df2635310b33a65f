"""Every series that counts events of the journal, declared once. Names and labels are those of Fluxo C.

Label values that are known beforehand exist from the start with 0, so that the first event is an increase.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter

from oraculo.adapters.sinks.prometheus.distribution import Histogram
from oraculo.core.compensation import TASK_FAILED
from oraculo.core.vocabulary import Cause, Kind, Status

NO_BAND = "none"  # a request has no risk band; a cognitive plan does
PRIORITY = "NORMAL"  # and no priority of its own
TASK_TYPES = tuple(kind.value for kind in Kind)
WORKFLOW = "workflow"
ENDINGS = tuple(status.value for status in Status if status.final)
TICKET_ENDINGS = tuple(status for status in ENDINGS if status != Status.PARCIAL)
MOST_RETRIES = 10  # retries beyond share one series, `10+`

WORKFLOW_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)
FAST_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
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


class Families:
    def __init__(self, r: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str, known: tuple[tuple[str, ...], ...] = ()) -> Counter:
            made = Counter(name, text, labels, registry=r)
            for values in known:
                made.labels(*values)
            return made

        def histogram(
            name: str, text: str, buckets: tuple[float, ...], *labels: str, known: tuple[tuple[str, ...], ...] = ()
        ) -> Histogram:
            made = Histogram(name, text, buckets, labels)
            r.register(made)
            for values in known:
                made.labels(*values)
            return made

        endings = tuple((status, NO_BAND) for status in ENDINGS)
        tickets = tuple(product(TICKET_ENDINGS, TASK_TYPES))
        self.started = counter(
            "orchestration_workflows_started_total",
            "Orchestrations started",
            "status",
            "risk_band",
            known=(("started", NO_BAND),),
        )
        self.completed = counter(
            "orchestration_workflows_completed_total", "Orchestrations that ended", "status", "risk_band", known=endings
        )
        self.duration = histogram(
            "orchestration_workflow_duration_seconds",
            "From acceptance to the end: the cycle time",
            WORKFLOW_BUCKETS,
            "status",
            "risk_band",
            known=endings,
        )
        self.generated = counter(
            "orchestration_tickets_generated_total",
            "Tickets made from plans",
            "task_type",
            "risk_band",
            "priority",
            known=tuple((kind, NO_BAND, PRIORITY) for kind in TASK_TYPES),
        )
        self.published = counter(
            "orchestration_tickets_published_total",
            "Ticket messages: confirmed by a broker, or refused for good",
            "status",
            known=(("confirmed",), ("refused",)),
        )
        self.tickets = counter(
            "orchestration_tickets_completed_total", "Tickets that closed", "status", "task_type", known=tickets
        )
        self.ticket_duration = histogram(
            "orchestration_ticket_duration_seconds",
            "From the release of a ticket to its end, all its attempts together",
            WORKFLOW_BUCKETS,
            "status",
            "task_type",
            known=tickets,
        )
        self.generation = histogram(
            "orchestration_ticket_generation_duration_seconds",
            "From the release of tickets to the record of the broker's confirmation of their first messages",
            FAST_BUCKETS,
        )
        self.retries = counter(
            "orchestration_retries_total",
            "Attempts that failed and are followed by another; `retry_attempt` is the number of the retry",
            "task_type",
            "retry_attempt",
            known=tuple(product(TASK_TYPES, ("1", "2"))),
        )
        self.attempt_failures = counter(
            "orchestration_attempt_failures_total",
            "Attempts that failed, the last ones too",
            "task_type",
            "causa",
            known=tuple(product(TASK_TYPES, tuple(Cause))),
        )
        self.violations = counter(
            "orchestration_sla_violations_total",
            "Tickets that were out of time: their last attempt, or their orchestration",
            "risk_band",
            "task_type",
            known=tuple((NO_BAND, kind) for kind in TASK_TYPES),
        )
        self.compensations = counter(
            "orchestration_compensations_triggered_total",
            "Plans whose work is being undone",
            "reason",
            known=((TASK_FAILED,),),
        )
        self.undone = counter(
            "orchestration_compensations_executed_total",
            "Tickets that undo another, as they ended",
            "reason",
            "status",
            known=tuple((TASK_FAILED, status) for status in TICKET_ENDINGS),
        )
        self.undo_duration = histogram(
            "orchestration_compensation_duration_seconds",
            "From the release of a ticket that undoes another to its end",
            WORKFLOW_BUCKETS,
            "reason",
            "status",
            known=tuple((TASK_FAILED, status) for status in TICKET_ENDINGS),
        )
        self.queries = counter(
            "orchestration_workflow_query_total",
            "Questions asked of workflows of Fluxo C",
            "query_name",
            "status",
            known=(("get_status", "success"), ("get_tickets", "success")),
        )
        self.approaching = counter(
            "orchestration_deadline_approaching_total",
            "Orchestrations that were open when 80 % of their time had passed",
        )
        self.lateness = histogram(
            "orchestration_deadline_lateness_seconds",
            "From a deadline to the record that it passed",
            FAST_BUCKETS,
            "task_type",
            known=tuple((kind,) for kind in (*TASK_TYPES, WORKFLOW)),
        )
        self.late = counter("orchestration_late_answers_total", "Answers that came too late to count")
        self.duplicates = counter(
            "orchestrator_duplicates_detected_total",
            "Messages that had come before",
            "component",
            known=(("requests",), ("results",)),
        )
        self.messages = counter(
            "orchestration_messages_total", "Messages received, by what became of them", "fila", "veredito"
        )
        self.dead = counter("orchestration_dead_letters_total", "Messages quarantined", "fila", "motivo")
        self.notices = counter(
            "orchestration_notifications_total",
            "Notices, by how they ended",
            "resultado",
            known=(("entregue",), ("falhou",), ("desistiu",)),
        )
        self.events = counter("orchestration_journal_events_total", "Events written to the journal")
        self.commits = histogram("orchestration_commit_steps", "Steps in one transaction", (1, 4, 16, 64, 256, 1024))
        self.lag = histogram(
            "orchestration_event_loop_lag_seconds",
            "How much later than it should the event loop came to a timer",
            LAG_BUCKETS,
        )
        self.mongodb = histogram(
            "mongodb_persistence_duration_seconds",
            "How long MongoDB took to answer",
            FAST_BUCKETS,
            "collection",
            "operation",
        )
        self.switches = counter(
            "orchestration_broker_switches_total",
            "Times that publishing went from one broker to another",
            "de",
            "para",
        )
