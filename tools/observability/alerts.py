"""The alerts: what is measured, the bound, how long, and a story in which each fires. `generate.py` writes the rules
for Prometheus and the tests for promtool. Each has a page in docs/runbooks.

The bounds are the objectives of Fluxo C: 99 % success and SLA compliance, burn rate 6 over an hour, dead letters above
10 for five minutes, P95 of a flow below four hours with a warning at three.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_P = "orchestration_"
_ENDED = f"{_P}workflows_completed_total"
_BAD = 'status!~"concluida|parcial"'


@dataclass(frozen=True)
class Recording:
    name: str
    expression: str


@dataclass(frozen=True)
class Alert:
    """`measures` is a query, `bound` makes a condition of it. `story` are series (with promtool's notation for values,
    one a minute) in which it fires at minute `at`, with the labels `expects`; in `quiet` it does not."""

    name: str
    measures: str
    bound: str
    lasts: str
    severity: str
    summary: str
    story: dict[str, str]
    at: str
    quiet: dict[str, str]
    expects: dict[str, str] = field(default_factory=dict)

    @property
    def expression(self) -> str:
        return f"{self.measures} {self.bound}"

    @property
    def page(self) -> str:
        """The name of its runbook: OraculoStoreDown → store-down.md."""
        words = "".join(f"-{c.lower()}" if c.isupper() else c for c in self.name.removeprefix("Oraculo"))
        return f"{words[1:]}.md"


def _errors(window: str) -> str:
    return f"sum(rate({_ENDED}{{{_BAD}}}[{window}])) / sum(rate({_ENDED}[{window}]))"


RECORDINGS = tuple(Recording(f"oraculo:error_ratio:{window}", _errors(window)) for window in ("5m", "30m", "1h", "6h"))


def _least(long: str, short: str) -> str:
    """The lower of two burn rates: that of long ago is over when the short one is low."""
    first, second = f"oraculo:error_ratio:{long}", f"oraculo:error_ratio:{short}"
    return f"({first} < {second} or {second}) / 0.01"


_OK, _ERR = f'{_ENDED}{{status="concluida"}}', f'{_ENDED}{{status="erro"}}'
_ONE = {"instance": "a", "job": "oraculo"}
_LABELS = 'job="oraculo",instance="a"'

ALERTS = (
    Alert(
        "OraculoDown", "up{job=\"oraculo\"}", "== 0", "1m", "critical",
        "A process of Oráculo does not answer its scrapes",
        {f"up{{{_LABELS}}}": "1 1 0x10"}, "5m", {f"up{{{_LABELS}}}": "1x10"}, _ONE,
    ),
    Alert(
        "OraculoStoreDown", f"min by (job, instance) ({_P}store_up)", "== 0", "1m", "critical",
        "The database cannot be written: nothing is accepted",
        {f"{_P}store_up{{{_LABELS}}}": "1 0x10"}, "5m", {f"{_P}store_up{{{_LABELS}}}": "1x10"}, _ONE,
    ),
    Alert(
        "OraculoBrokerDown", f"min by (broker) ({_P}broker_up)", "== 0", "1m", "warning",
        "A broker does not bring back the probe that is sent through it",
        {f'{_P}broker_up{{broker="amqp"}}': "1 0x10"}, "5m", {f'{_P}broker_up{{broker="amqp"}}': "1x10"},
        {"broker": "amqp"},
    ),
    Alert(
        "OraculoBrokerSwitched", f"sum by (de, para) (increase({_P}broker_switches_total[15m]))", "> 0", "0m",
        "warning", "Publishing went from one broker to another",
        {f'{_P}broker_switches_total{{de="amqp",para="redis"}}': "0 0 1x10"}, "6m",
        {f'{_P}broker_switches_total{{de="amqp",para="redis"}}': "0x10"}, {"de": "amqp", "para": "redis"},
    ),
    Alert(
        "OraculoOutboxOld", f"max by (job, instance) ({_P}outbox_oldest_seconds)", "> 30", "1m", "critical",
        "A message is owed to a broker for more than 30 seconds",
        {f"{_P}outbox_oldest_seconds{{{_LABELS}}}": "0 40+60x10"}, "5m",
        {f"{_P}outbox_oldest_seconds{{{_LABELS}}}": "0x10"}, _ONE,
    ),
    Alert(
        "OraculoProjectionBehind", "max by (projection) (oraculo_projection_age_seconds)", "> 300", "5m", "warning",
        "A projection (the audit) is more than five minutes behind the journal",
        {'oraculo_projection_age_seconds{projection="mongodb"}': "0 400+60x20"}, "12m",
        {'oraculo_projection_age_seconds{projection="mongodb"}': "1x20"}, {"projection": "mongodb"},
    ),
    Alert(
        "OraculoConsumerSilent",
        f'(max by (fila) (min_over_time({_P}queue_depth{{fila=~"orquestrador_.*"}}[3m]))'
        f" unless on (fila) (sum by (fila) (rate({_P}messages_received_total[3m])) > 0))",
        "> 0", "2m", "critical", "Messages wait for the orchestrator and it takes none",
        {
            f'{_P}queue_depth{{fila="orquestrador_resultados"}}': "5x20",
            f'{_P}messages_received_total{{fila="orquestrador_resultados"}}': "7x20",
        },
        "12m",
        {
            f'{_P}queue_depth{{fila="orquestrador_resultados"}}': "5x20",
            f'{_P}messages_received_total{{fila="orquestrador_resultados"}}': "0+9x20",
        },
        {"fila": "orquestrador_resultados"},
    ),
    Alert(
        "OraculoQueueUnattended",
        f'max by (fila) (min_over_time({_P}queue_depth{{fila=~"(escavador|executador)_.*"}}[10m]))', "> 0", "5m",
        "warning", "Work waits in a queue for more than ten minutes: it has too few workers, or none",
        {f'{_P}queue_depth{{fila="escavador_blog"}}': "3x30"}, "20m",
        {f'{_P}queue_depth{{fila="escavador_blog"}}': "3 0 3 0x20"}, {"fila": "escavador_blog"},
    ),
    Alert(
        "OraculoBreakerOpen", f"max by (fila) ({_P}breaker_open)", "> 0", "1m", "warning",
        "A destination failed again and again: its orders wait until a probe is answered",
        {f'{_P}breaker_open{{fila="escavador_blog"}}': "1x10"}, "5m",
        {f'{_P}breaker_open{{fila="escavador_blog"}}': "_x10"}, {"fila": "escavador_blog"},
    ),
    Alert(
        "OraculoConnectionReset", f"sum by (broker) (increase({_P}broker_resets_total[15m]))", "> 0", "0m", "warning",
        "A connection to a broker was silent and was made anew",
        {f'{_P}broker_resets_total{{broker="amqp"}}': "0 0 1x10"}, "6m",
        {f'{_P}broker_resets_total{{broker="amqp"}}': "0x10"}, {"broker": "amqp"},
    ),
    Alert(
        "OraculoDeadLettersWaiting", f"sum (max by (fila) ({_P}dead_letters_waiting))", "> 10", "5m", "critical",
        "More than ten dead letters wait for an operator",
        {f'{_P}dead_letters_waiting{{fila="orquestrador_resultados"}}': "11x20"}, "10m",
        {f'{_P}dead_letters_waiting{{fila="orquestrador_resultados"}}': "10x20"},
    ),
    Alert(
        "OraculoDeadLettersGrow", f"sum (deriv({_P}dead_letters_waiting[5m]))", "> 0.1", "5m", "warning",
        "Messages are quarantined faster than one in ten seconds",
        {f'{_P}dead_letters_waiting{{fila="orquestrador_resultados"}}': "0+30x20"}, "15m",
        {f'{_P}dead_letters_waiting{{fila="orquestrador_resultados"}}': "0+1x20"},
    ),
    Alert(
        "OraculoSlaViolations",
        f"sum(increase({_P}sla_violations_total[10m])) / sum(increase({_P}tickets_completed_total[10m]))", "> 0.01",
        "5m", "critical", "More than one ticket in a hundred is out of time",
        {
            f'{_P}sla_violations_total{{task_type="coleta"}}': "0+2x30",
            f'{_P}tickets_completed_total{{status="timeout"}}': "0+100x30",
        },
        "20m",
        {
            f'{_P}sla_violations_total{{task_type="coleta"}}': "0x30",
            f'{_P}tickets_completed_total{{status="timeout"}}': "0+100x30",
        },
    ),
    Alert(
        "OraculoDeadlineApproaching", f"sum(increase({_P}deadline_approaching_total[10m]))", "> 0", "0m", "warning",
        "Orchestrations are open that have used 80 % of their time",
        {f"{_P}deadline_approaching_total": "0 0 1x10"}, "6m", {f"{_P}deadline_approaching_total": "0x10"},
    ),
    Alert(
        "OraculoDeadlineOverdue", f"min by (job, instance) ({_P}sla_remaining_seconds)", "< -5", "1m", "critical",
        "An orchestration is past its deadline and was not ended: timers do not fire",
        {f"{_P}sla_remaining_seconds{{{_LABELS}}}": "60-60x10"}, "5m",
        {f"{_P}sla_remaining_seconds{{{_LABELS}}}": "60x10"}, _ONE,
    ),
    Alert(
        "OraculoSuccessRateLow", "1 - oraculo:error_ratio:30m", "< 0.99", "10m", "critical",
        "Fewer than 99 % of the orchestrations end well",
        {_OK: "0+98x60", _ERR: "0+2x60"}, "50m", {_OK: "0+100x60", _ERR: "0x60"},
    ),
    Alert(
        "OraculoBurnRateFast", _least("1h", "5m"), "> 6", "10m",
        "critical", "The error budget of a month is gone in five days: it burns six times too fast",
        {_OK: "0+90x90", _ERR: "0+10x90"}, "80m", {_OK: "0+95x90", _ERR: "0+5x90"},
    ),
    Alert(
        "OraculoBurnRateSlow", _least("6h", "30m"), "> 3", "30m",
        "warning", "The error budget burns three times too fast for hours",
        {_OK: "0+96x400", _ERR: "0+4x400"}, "390m", {_OK: "0+98x400", _ERR: "0+2x400"},
    ),
    Alert(
        "OraculoWorkflowSlow",
        f"histogram_quantile(0.95, sum by (le) (rate({_P}workflow_duration_seconds_bucket[1h])))", "> 10800", "10m",
        "warning", "P95 of the cycle time is above three hours; the objective is four",
        {
            f'{_P}workflow_duration_seconds_bucket{{le="3600"}}': "0x90",
            f'{_P}workflow_duration_seconds_bucket{{le="14400"}}': "0+10x90",
            f'{_P}workflow_duration_seconds_bucket{{le="+Inf"}}': "0+10x90",
        },
        "80m",
        {
            f'{_P}workflow_duration_seconds_bucket{{le="3600"}}': "0+10x90",
            f'{_P}workflow_duration_seconds_bucket{{le="14400"}}': "0+10x90",
            f'{_P}workflow_duration_seconds_bucket{{le="+Inf"}}': "0+10x90",
        },
    ),
    Alert(
        "OraculoDuplicates", "sum(rate(orchestrator_duplicates_detected_total[5m]))", "> 10", "5m", "warning",
        "More than ten duplicates a second: somebody sends everything again",
        {'orchestrator_duplicates_detected_total{component="results"}': "0+1200x20"}, "15m",
        {'orchestrator_duplicates_detected_total{component="results"}': "0+60x20"},
    ),
    Alert(
        "OraculoConflictingAnswers", f"sum(increase({_P}conflicting_answers_total[15m]))", "> 0", "0m", "warning",
        "An attempt was answered twice, and not the same: a worker is wrong, or an answer is forged",
        {f"{_P}conflicting_answers_total": "0 0 1x10"}, "6m", {f"{_P}conflicting_answers_total": "0x10"},
    ),
    Alert(
        "OraculoUnauthenticatedAnswers",
        f'sum(increase({_P}dead_letters_total{{motivo="unauthenticated"}}[15m]))', "> 0", "0m", "warning",
        "Answers came without the token of their ticket: a worker does not echo it, or an answer is forged",
        {f'{_P}dead_letters_total{{motivo="unauthenticated"}}': "0 0 1x10"}, "6m",
        {f'{_P}dead_letters_total{{motivo="unauthenticated"}}': "0x10"},
    ),
    Alert(
        "OraculoNoticesGivenUp", f'sum(increase({_P}notifications_total{{resultado="desistiu"}}[30m]))', "> 0", "0m",
        "warning", "Notices could not be delivered and were given up",
        {f'{_P}notifications_total{{resultado="desistiu"}}': "0 0 1x10"}, "6m",
        {f'{_P}notifications_total{{resultado="desistiu"}}': "0x10"},
    ),
    Alert(
        "OraculoEventLoopLag",
        f"histogram_quantile(0.99, sum by (le, job, instance) (rate({_P}event_loop_lag_seconds_bucket[5m])))", "> 0.25",
        "5m", "warning", "The event loop is late by more than a quarter of a second: the process is overloaded",
        {
            f'{_P}event_loop_lag_seconds_bucket{{le="0.25",{_LABELS}}}': "0+10x20",
            f'{_P}event_loop_lag_seconds_bucket{{le="0.5",{_LABELS}}}': "0+20x20",
            f'{_P}event_loop_lag_seconds_bucket{{le="+Inf",{_LABELS}}}': "0+20x20",
        },
        "15m",
        {
            f'{_P}event_loop_lag_seconds_bucket{{le="0.25",{_LABELS}}}': "0+20x20",
            f'{_P}event_loop_lag_seconds_bucket{{le="0.5",{_LABELS}}}': "0+20x20",
            f'{_P}event_loop_lag_seconds_bucket{{le="+Inf",{_LABELS}}}': "0+20x20",
        },
        _ONE,
    ),
    Alert(
        "OraculoSpansLost", f'sum(rate({_P}spans_total{{resultado="perdido"}}[10m]))', "> 0", "10m", "warning",
        "Traces are lost: their backend does not take them",
        {f'{_P}spans_total{{resultado="perdido"}}': "0+10x30"}, "25m",
        {f'{_P}spans_total{{resultado="perdido"}}': "0x30"},
    ),
)  # fmt: skip
