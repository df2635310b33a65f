"""The dashboard's nine rows: every panel with its queries. `generate.py` makes the JSON that Grafana imports.

A query names `$job` and `$instance` (chosen in Grafana) by the placeholder SELECT, and `$__rate_interval`. Counters
whose labels come up only with the first event are shown as they stand: a rate would miss that event.
"""

from __future__ import annotations

from dataclasses import dataclass

SELECT = 'job=~"$job",instance=~"$instance"'
RATE = "$__rate_interval"


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[Query, ...] = ()
    unit: str = "short"
    kind: str = "timeseries"  # or stat, text
    text: str = ""  # what it means; the content of a text panel


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


def read(series: str, *conditions: str) -> str:
    return f"{series}{{{','.join([*conditions, SELECT])}}}"


def rate(series: str, *conditions: str, by: str = "") -> str:
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({read(series, *conditions)}[{RATE}]))"


def total(series: str, *conditions: str, by: str = "") -> str:
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} ({read(series, *conditions)})"


def quantile(share: float, series: str, by: str = "") -> str:
    grouped = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(f'{series}_bucket', by=grouped)})"


def percentiles(title: str, series: str) -> Panel:
    queries = tuple(Query(quantile(share, series), f"P{share * 100:.0f}") for share in (0.5, 0.95, 0.99))
    return Panel(title, queries, "s")


def one(title: str, expression: str, legend: str = "", unit: str = "short", kind: str = "timeseries") -> Panel:
    return Panel(title, (Query(expression, legend),), unit, kind)


_P = "orchestration_"
_GOOD = 'status=~"concluida|parcial"'
_ENDED = f"{_P}workflows_completed_total"

ROWS = (
    Row(
        "Overview",
        (
            one("Workflows started", rate(f"{_P}workflows_started_total"), "started/s", "ops"),
            one("Workflows ended", rate(_ENDED, by="status"), "{{status}}", "ops"),
            one("Success rate", f"{rate(_ENDED, _GOOD)} / {rate(_ENDED)}", unit="percentunit", kind="stat"),
            one("Open", total(f"{_P}workflows_active"), kind="stat"),
            one("Owed to the brokers", total(f"{_P}outbox_messages"), kind="stat"),
            one("Oldest message owed", f"max ({read(f'{_P}outbox_oldest_seconds')})", unit="s", kind="stat"),
            one("Store", f"min ({read(f'{_P}store_up')})", kind="stat"),
            one("Events written", rate(f"{_P}journal_events_total"), "events/s", "ops"),
        ),
    ),
    Row(
        "Workflow duration",
        (
            percentiles("Cycle time of workflows", f"{_P}workflow_duration_seconds"),
            percentiles("Cycle time of tickets", f"{_P}ticket_duration_seconds"),
            one(
                "Mean cycle time by ending",
                f"{rate(f'{_P}workflow_duration_seconds_sum', by='status')}"
                f" / {rate(f'{_P}workflow_duration_seconds_count', by='status')}",
                "{{status}}",
                "s",
            ),
        ),
    ),
    Row(
        "Tickets",
        (
            one("Generated", rate(f"{_P}tickets_generated_total", by="task_type"), "{{task_type}}", "ops"),
            one("Published", rate(f"{_P}tickets_published_total", by="status"), "{{status}}", "ops"),
            one("Completed", rate(f"{_P}tickets_completed_total", by="status"), "{{status}}", "ops"),
            percentiles("From release to confirmation", f"{_P}ticket_generation_duration_seconds"),
            one("Waiting in queues", f"max by (fila) ({read(f'{_P}queue_depth')})", "{{fila}}"),
            one("Open breakers", f"max by (fila) ({read(f'{_P}breaker_open')})", "{{fila}}"),
            one("Breakers opened", rate(f"{_P}breakers_opened_total")),
            one("Forgotten by retention", rate(f"{_P}runs_forgotten_total")),
            one("Held back by the ceiling", total(f"{_P}tickets_held_back")),
            one("Oldest in queues", f"max by (fila) ({read(f'{_P}queue_oldest_seconds')})", "{{fila}}", "s"),
            one("Consumers of queues", f"max by (fila) ({read(f'{_P}queue_consumers')})", "{{fila}}"),
            one("Sent to queues", rate(f"{_P}queue_sent_total", by="fila"), "{{fila}}", "ops"),
            one("Answered from queues", rate(f"{_P}queue_answered_total", by="fila"), "{{fila}}", "ops"),
        ),
    ),
    Row(
        "SLA tracking",
        (
            one("Violations", rate(f"{_P}sla_violations_total", by="task_type"), "{{task_type}}", "ops"),
            one(
                "Compliance of tickets",
                f"1 - {rate(f'{_P}sla_violations_total')} / {rate(f'{_P}tickets_completed_total')}",
                unit="percentunit",
                kind="stat",
            ),
            one("Least time left", f"min ({read(f'{_P}sla_remaining_seconds')})", unit="s", kind="stat"),
            one("Deadlines approaching", rate(f"{_P}deadline_approaching_total"), "at 80 %/s", "ops"),
            percentiles("How late deadlines are noticed", f"{_P}deadline_lateness_seconds"),
            one("Burn rate of the error budget (99 %)", f"(1 - {rate(_ENDED, _GOOD)} / {rate(_ENDED)}) / 0.01"),
        ),
    ),
    Row(
        "Retry and compensation",
        (
            one(
                "Retries",
                rate(f"{_P}retries_total", by="task_type, retry_attempt"),
                "{{task_type}} #{{retry_attempt}}",
                "ops",
            ),
            one("Failed attempts", rate(f"{_P}attempt_failures_total", by="causa"), "{{causa}}", "ops"),
            one("Plans undone", rate(f"{_P}compensations_triggered_total", by="reason"), "{{reason}}", "ops"),
            one("Tickets that undo", rate(f"{_P}compensations_executed_total", by="status"), "{{status}}", "ops"),
            percentiles("Time to undo a ticket", f"{_P}compensation_duration_seconds"),
            one("Late answers", rate(f"{_P}late_answers_total"), "late/s", "ops"),
            one("Conflicting answers", rate(f"{_P}conflicting_answers_total"), "conflicting/s", "ops"),
            one("Duplicates", rate("orchestrator_duplicates_detected_total", by="component"), "{{component}}", "ops"),
            one("Dead letters since the start", total(f"{_P}dead_letters_total", by="motivo"), "{{motivo}}"),
            one("Dead letters waiting", f"max by (fila) ({read(f'{_P}dead_letters_waiting')})", "{{fila}}"),
            one("Notices", rate(f"{_P}notifications_total", by="resultado"), "{{resultado}}", "ops"),
        ),
    ),
    Row(
        "Kafka integration",
        (
            one("Consumed from Kafka", rate(f"{_P}kafka_messages_consumed_total"), "messages/s", "ops"),
            one("Produced to Kafka", rate(f"{_P}kafka_messages_produced_total"), "messages/s", "ops"),
            one("Consumer lag", f"max ({read(f'{_P}kafka_consumer_lag')})"),
            one(
                "Kafka errors since the start",
                total(f"{_P}kafka_errors_total", by="operation, error_type"),
                "{{operation}}: {{error_type}}",
            ),
            one("Webhooks of tickets", rate(f"{_P}ticket_webhooks_total", by="resultado"), "{{resultado}}", "ops"),
            one("Telemetry on topics", rate(f"{_P}topic_records_total", by="record"), "{{record}}", "ops"),
            one("Brokers that answer", f"min by (broker) ({read(f'{_P}broker_up')})", "{{broker}}"),
            one("Published to", f"max by (broker) ({read(f'{_P}broker_active')})", "{{broker}}"),
            one("Round trip of probes", f"max by (broker) ({read(f'{_P}broker_probe_seconds')})", "{{broker}}", "s"),
            one(
                "Switches since the start",
                total(f"{_P}broker_switches_total", by="de, para"),
                "{{de}} → {{para}}",
            ),
            one("Reconnects", f"max by (broker) ({read(f'{_P}broker_reconnects')})", "{{broker}}"),
            one("Connections made anew by probes", total(f"{_P}broker_resets_total", by="broker"), "{{broker}}"),
            one("Messages received", rate(f"{_P}messages_received_total", by="fila"), "{{fila}}", "ops"),
            one("What became of messages", total(f"{_P}messages_total", by="veredito"), "{{veredito}}"),
        ),
    ),
    Row(
        "Validations and optimizations",
        (
            one("Requests looked at", rate(f"{_P}plan_validations_total", by="result"), "{{result}}", "ops"),
            one("Questions to workflows", total(f"{_P}workflow_query_total", by="query_name"), "{{query_name}}"),
            one("Repeated requests", rate("orchestrator_idempotency_cache_hits_total"), "repeated/s", "ops"),
            one(
                "Requests without correlation_id",
                rate("neural_hive_orchestrator_correlation_id_missing_total"),
                "unnamed/s",
                "ops",
            ),
            one(
                "Steps in one transaction",
                f"{rate(f'{_P}commit_steps_sum')} / {rate(f'{_P}commit_steps_count')}",
                "mean",
            ),
        ),
    ),
    Row(
        "Resources",
        (
            one("CPU", f"rate({read('process_cpu_seconds_total')}[{RATE}])", "{{instance}}", "percentunit"),
            one("Memory", read("process_resident_memory_bytes"), "{{instance}}", "bytes"),
            one("Open files", read("process_open_fds"), "{{instance}}"),
            one("Processes", f"count (up{{{SELECT}}} == 1)", kind="stat"),
            percentiles("Event-loop lag", f"{_P}event_loop_lag_seconds"),
            one("Workers over HTTP", total(f"{_P}http_workers"), "workers"),
            one("Projections behind", f"max by (projection) ({read('oraculo_projection_lag')})", "{{projection}}"),
            one("Messages leased", total(f"{_P}leases"), "leases"),
        ),
    ),
    Row(
        "Logs and traces",
        (
            one("Lines logged", total(f"{_P}log_lines_total", by="level"), "{{level}}"),
            one("Spans", rate(f"{_P}spans_total", by="resultado"), "{{resultado}}", "ops"),
            Panel(
                "Where to look",
                kind="text",
                text="Logs: search `correlation_id` in Kibana (deploy/elk). Traces: the `trace.id` of a log line, or "
                "`neural.hive.plan.id`, `neural.hive.workflow.id` and `neural.hive.correlation.id` in Jaeger.",
            ),
        ),
    ),
)
