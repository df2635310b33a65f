"""A journal → the spans of its trace. Pure, and the same in every process: times are those of events, ids are hashed.

orchestration_workflow.run            one orchestration
  ticket_execution                    one ticket, linked to the tickets of the fan-in that released it
    task_execution                    one attempt of several; a ticket with a single attempt is both in one
      orchestrator.result             an answer that came with a context of the worker's own
  orchestrator.notify                 one attempt at a notice
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from oraculo.core import events as ev
from oraculo.core.blocks import Blocks, add_rows, with_room
from oraculo.core.compensation import grown
from oraculo.core.flow.profile import flow_in, specs_in
from oraculo.core.plan import Plan
from oraculo.core.sentences import errors_said, say
from oraculo.core.ticket_id import plan_id, ticket_id
from oraculo.core.vocabulary import Status
from oraculo.ports.journal import Recorded
from oraculo.redaction import redact
from oraculo.wire import trace_context as context

WORKFLOW, TICKET, ATTEMPT = "orchestration_workflow.run", "ticket_execution", "task_execution"
ANSWER, NOTICE = "orchestrator.result", "orchestrator.notify"
MAX_LINKS = 128
MAX_SPAN_EVENTS = 128

Attributes = dict[str, Any]
Answers = Mapping[int, str]  # number of an event → the context that its answer came with


@dataclass(slots=True)
class Span:
    """`number` is that of the event that ended it. Times are instants of the journal."""

    name: str
    id: str
    parent: str | None
    start: datetime
    end: datetime
    attributes: Attributes
    number: int
    kind: str = "internal"
    error: str | None = None
    events: list[tuple[str, datetime, Attributes]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # ids of spans in the same trace


def spans_of(traceparent: str, recorded: Iterable[Recorded], answers: Answers, system: str = "") -> list[Span]:
    """Every span that has ended."""
    return list(_Reader(traceparent, answers, system).read(recorded))


class _Reader:
    def __init__(self, traceparent: str, answers: Answers, system: str) -> None:
        self._parent = context.span_id(traceparent)
        self._trace = context.trace_id(traceparent)
        self._answers = answers
        self._system = system
        self._common: Attributes = {}
        self._plan: Plan
        self._run = 0
        self._workflow: Span
        self._released: dict[int, datetime] = {}  # position → when its ticket was released
        self._attempts: dict[int, int] = {}  # position → how many were made, or are to be
        self._sent: dict[int, tuple[int, datetime]] = {}  # position → attempt that runs, since when
        self._confirmed: dict[int, datetime] = {}
        self._notices: dict[int, datetime] = {}
        self._concluded: set[int] = set()
        self._blocks: Blocks | None = None

    def read(self, recorded: Iterable[Recorded]) -> Iterator[Span]:
        for step in recorded:
            for number, event in enumerate(step.events, step.first):
                yield from self._event(event, step.at, number)

    def _event(self, event: ev.Event, at: datetime, number: int) -> Iterator[Span]:
        match event:
            case ev.OrchestrationStarted():
                self._start(event, at)
            case ev.TicketsDispatched(positions, attempt):
                for position in positions:
                    self._released.setdefault(position, at)
                    self._sent[position] = (attempt, at)
                    self._attempts[position] = attempt
                    self._confirmed.pop(position, None)
                self._note("tickets_published", at, {"tickets": len(positions)})
            case ev.TicketRequeued(position, attempt):
                self._sent[position] = (attempt, at)
                self._attempts[position] = attempt
                self._note("ticket_requeued", at, {"tentativa": attempt})
            case ev.TicketWithdrawn(position, attempt, cause, worker):
                yield from self._attempt(
                    position, at, number, f"withdrawn from {worker or 'its worker'}: {cause.value}"
                )
                self._sent[position] = (attempt + 1, at)
                self._attempts[position] = attempt + 1
            case ev.DispatchConfirmed(confirmed):
                self._confirmed.update((position, at) for position, _ in confirmed)
            case ev.FanInClosed(_gate, passed):
                self._note("fan_in_closed", at, {"atendido": passed})
            case ev.TicketConcluded(position):
                self._concluded.add(position)
                yield from self._ticket(position, at, number, Status.CONCLUIDA, None)
            case ev.ChildEnded(position, _attempt, status):
                yield from self._ticket(position, at, number, status, None)
            case ev.AttemptFailed(position, attempt):
                self._attempts[position] = attempt + 1
                yield from self._attempt(position, at, number, _first(event))
            case ev.TicketFailed(position, _attempt, status):
                yield from self._ticket(position, at, number, status, _first(event))
            case ev.TicketsClosed(positions, status, reason):
                error = redact(say(reason)) if status is Status.TIMEOUT else None
                for position in positions:
                    if position in self._released:
                        yield from self._ticket(position, at, number, status, error)
            case ev.LateAnswerKept(position, attempt) | ev.ConflictingAnswerKept(position, attempt):
                parent = context.attempt_span(self._run, position, attempt)
                why = "late" if isinstance(event, ev.LateAnswerKept) else "conflicting"
                about = {**self._order(position, attempt), why: True}
                yield Span(ANSWER, context.answer_span(self._run, number), parent, at, at, about, number, "consumer")
            case ev.OrchestrationClosed(status):
                self._note("results_consolidated", at, {})
                workflow = self._workflow
                workflow.end, workflow.number = at, number
                workflow.attributes["oraculo.status"] = status.value
                if status in (Status.ERRO, Status.TIMEOUT):
                    workflow.error = status.value
                yield workflow
            case ev.ApprovalAsked():
                self._note("approval_asked", at, {})
            case ev.ApprovalGiven(by, reason) | ev.ApprovalRefused(by, reason):
                about = {"aprovado": isinstance(event, ev.ApprovalGiven), "por": redact(by), "motivo": redact(reason)}
                self._note("approval_decided", at, about)
            case ev.CompensationStarted(undone, why):
                self._plan = grown(self._plan, event)
                self._note("compensation_started", at, {"tickets": len(undone), "motivo": redact(why)})
            case ev.ResultsReused(results=results):
                self._note("results_reused", at, {"tickets": len(results)})
            case ev.MapRestored(owner, first, total):
                self._grow(ev.PlanGrown(owner, first, 0, total, total, []))
                self._note("tickets_generated", at, {"tickets": total})
            case ev.PlanGrown():
                self._grow(event)
                self._note("tickets_generated", at, {"tickets": event.count})
            case ev.NoticeSent(notice, _attempt):
                self._notices[notice] = at
            case ev.NoticeDelivered(notice, attempt, detail):
                yield self._notice(notice, attempt, at, number, detail, failed=False)
            case ev.NoticeFailed(notice, attempt, detail) | ev.NoticeGivenUp(notice, attempt, detail):
                yield self._notice(notice, attempt, at, number, detail, failed=True)
            case _:
                pass

    def _grow(self, event: ev.PlanGrown) -> None:
        if self._blocks is None:
            self._blocks = Blocks(len(self._plan.tasks))
            self._plan = with_room(self._plan)
        add_rows(self._plan, self._blocks, replace(event, rows=[]))

    def _start(self, event: ev.OrchestrationStarted, at: datetime) -> None:
        self._run, self._plan = event.run, event.plan
        name = redact(event.correlation_id)
        flow = flow_in(event.plan)
        self._common = {
            "neural.hive.correlation.id": name,
            "neural.hive.intent.id": redact(flow.intent_id) if flow else name,  # a request is its own intent
            "neural.hive.plan.id": redact(flow.plan_id) if flow else plan_id(event.run),
            "neural.hive.workflow.id": redact(flow.workflow_id) if flow else f"orch-flow-c-{name}",
        }
        flow = flow_in(event.plan)
        if flow is not None:
            self._common |= {
                "neural.hive.intent.id": redact(flow.intent_id),
                "neural.hive.plan.id": redact(flow.plan_id),
                "neural.hive.decision.id": redact(flow.decision_id),
                "neural.hive.workflow.id": redact(flow.workflow_id),
            }
        own = context.workflow_span(event.run)
        parent = None if own == self._parent else self._parent
        attributes = {**self._common, "neural.hive.workflow.type": event.plan.tipo or "coleta_execucao"}
        attributes["plan.id"] = attributes["neural.hive.plan.id"]
        self._workflow = Span(WORKFLOW, own, parent, at, at, attributes, 0)
        self._note("plan_validated", at, {})
        self._note("tickets_generated", at, {"tickets": len(event.plan.tasks)})

    def _note(self, name: str, at: datetime, about: Attributes) -> None:
        if len(self._workflow.events) < MAX_SPAN_EVENTS:
            self._workflow.events.append((name, at, about))

    def _order(self, position: int, attempt: int) -> Attributes:
        """Of the spans inside a ticket's; few, because every attribute costs and the ticket has the others."""
        return {
            "neural.hive.correlation.id": self._common["neural.hive.correlation.id"],
            "neural.hive.ticket.id": ticket_id(self._run, position),
            "messaging.destination": self._plan.tasks[position].queue,
            "tentativa": attempt,
        }

    def _id(self, position: int) -> str:
        """Of a ticket's span. With a single attempt it is that of the attempt, whose context the message carries."""
        if self._attempts[position] == 1:
            return context.attempt_span(self._run, position, 1)
        return context.ticket_span(self._run, position)

    def _ticket(self, position: int, at: datetime, number: int, status: Status, error: str | None) -> Iterator[Span]:
        if self._attempts[position] > 1:
            yield from self._attempt(position, at, number, error)
        task, identity = self._plan.tasks[position], ticket_id(self._run, position)
        attributes = {
            **self._common,
            "neural.hive.ticket.id": identity,
            "ticket.id": identity,
            "ticket.status": status.value,
            "messaging.destination": task.queue,
        }
        if self._system:
            attributes["messaging.system"] = self._system
        released = self._released[position]
        span = Span(TICKET, self._id(position), self._workflow.id, released, at, attributes, number, "producer", error)
        if position in self._confirmed:
            span.events.append(("dispatch_confirmed", self._confirmed.pop(position), {}))
        if task.after is not None:
            inputs = [p for p in self._plan.gates[task.after].inputs if p in self._concluded][:MAX_LINKS]
            span.links = [self._id(p) for p in inputs]
        specs = specs_in(self._plan)
        undone = specs[position].compensates if specs else None
        if undone is not None:
            span.links.append(self._id(undone))
        yield span
        if self._attempts[position] == 1:
            yield from self._answer(position, 1, at, number)

    def _attempt(self, position: int, at: datetime, number: int, error: str | None) -> Iterator[Span]:
        attempt, since = self._sent.pop(position, (0, at))
        if not attempt:
            return  # it waits for its next attempt
        own, parent = context.attempt_span(self._run, position, attempt), context.ticket_span(self._run, position)
        span = Span(ATTEMPT, own, parent, since, at, self._order(position, attempt), number, "producer", error)
        if position in self._confirmed:
            span.events.append(("dispatch_confirmed", self._confirmed.pop(position), {}))
        yield span
        yield from self._answer(position, attempt, at, number)

    def _answer(self, position: int, attempt: int, at: datetime, number: int) -> Iterator[Span]:
        """When the answer came with a context of the worker's own."""
        answer, own = self._answers.get(number), context.attempt_span(self._run, position, attempt)
        if answer is not None and context.trace_id(answer) == self._trace and context.span_id(answer) != own:
            inside, about = context.span_id(answer), self._order(position, attempt)
            yield Span(ANSWER, context.answer_span(self._run, number), inside, at, at, about, number, "consumer")

    def _notice(self, notice: int, attempt: int, at: datetime, number: int, detail: str, *, failed: bool) -> Span:
        target = "webhook" if self._plan.notify.webhook and notice == 0 else "fila"
        attributes = {**self._common, "oraculo.destino": target, "tentativa": attempt, "detail": redact(detail)}
        return Span(
            NOTICE,
            context.notice_span(self._run, notice, attempt),
            self._workflow.id,
            self._notices.get(notice, at),
            at,
            attributes,
            number,
            "client" if target == "webhook" else "producer",
            redact(detail) if failed else None,
        )


def _first(event: ev.AttemptFailed | ev.TicketFailed) -> str:
    erros = errors_said(event)
    return redact(str(erros[0].get("mensagem") or erros[0].get("codigo")))[:300] if erros else "erro"
