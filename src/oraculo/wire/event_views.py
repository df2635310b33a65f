"""What the outside sees of the events of a journal: one shape for API, CLI, logs and audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from oraculo.core import events as ev
from oraculo.core import sentences
from oraculo.core.resolution import Outcome, Resolution
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id
from oraculo.ports.journal import Recorded
from oraculo.wire import allocation_views, policy_views, trace_context
from oraculo.wire.flow import sections
from oraculo.wire.views import does, origin


def event_name(kind: type) -> str:
    """What the outside calls an event of this class."""
    return _SNAKE[kind]


_SNAKE = {cls: "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:] for cls in ev.Event.__args__}


def events(
    run: int, plan: Any, recorded: Recorded, after: int = 0, language: Language = DEFAULT_LANGUAGE
) -> Iterator[dict[str, Any]]:
    """The events of one step that are numbered above `after`, as the outside sees them."""
    for number, event in enumerate(recorded.events, recorded.first):
        if number > after:
            yield {
                "seq": number,
                "em": recorded.at,
                "evento": _SNAKE[type(event)],
                **_fields(run, plan, event, language),
            }


def _fields(run: int, plan: Any, event: ev.Event, language: Language) -> dict[str, Any]:
    match event:
        case ev.PlanGrown():
            return _growth(run, plan, event)
        case ev.MapRestored(owner, first, total):
            return _growth(run, plan, ev.PlanGrown(owner, first, 0, total, total, []))
        case ev.ResultsReused(results=results, more=more):
            return {"resultados": len(results), "continua": more}
        case ev.TicketAllocated():
            return allocation_views.of_event(run, plan, event)
        case ev.PolicyAsked():
            return policy_views.asked(run, event)
        case ev.PolicyEvaluated():
            return policy_views.evaluated(run, event)
    shown: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        match field.name:
            case "ticket":
                shown["ticket_id"], shown["destino"] = ticket_id(run, value), plan.tasks[value].queue or None
            case "undone":
                shown["desfaz"] = [ticket_id(run, item) for item in value]
            case "tickets":
                shown["tickets"] = [ticket_id(run, item if isinstance(item, int) else item[0]) for item in value]
            case "attempt":
                shown["tentativa"] = value
            case "plan":
                shown["tickets_total"] = len(value.tasks)
                shown |= sections.of_plan(value)
            case "resolutions":
                shown["avaliacoes"] = [_resolution(run, plan, one) for one in value]
            case "output" if isinstance(event, ev.Resolved):
                shown["saida"] = None if value is None else {"desfecho": value.outcome, **_explained(value)}
            case "task" | "taken_by":
                if value is not None or isinstance(event, ev.SignalReceived):
                    shown["tarefa"] = None if value is None else plan.profile.name_of(value)
            case "ending":
                if value is not None:
                    shown["desfecho"] = value
            case "undo":
                if value:
                    shown["desfazer"] = value
            case "run" | "fingerprint" | "digest" | "content" | "added":
                pass
            case "name" if isinstance(event, ev.SignalReceived):
                shown["sinal"] = value
            case "signal":
                shown["sinal_id"] = value
            case "erros":
                shown["erros"] = sentences.errors_said(event, language)
            case "reason" if isinstance(event, ev.TicketsClosed | ev.MapEnded | ev.LoopEnded | ev.WaitEnded):
                shown["motivo"] = sentences.say_optional(event.reason, language)
            case "reason" if isinstance(event, ev.AttemptFailed | ev.TicketFailed):
                pass  # its errors say it
            case "correlation_id":
                shown["correlation_id"] = local_name(value)
            case "actor":
                if value is not None:
                    shown["ator"] = value
            case "work_ms":
                if value is not None:
                    shown["duracao_ms"] = value
            case "origin":
                shown |= {} if value is None else origin(value)
            case "traceparent":
                if value is not None:
                    shown["trace_id"] = trace_context.trace_id(value)
            case name:
                shown[_NAMES.get(name, name)] = value
    return shown


def _growth(run: int, plan: Any, event: ev.PlanGrown) -> dict[str, Any]:
    """What a map or a loop grew by; the parameters of its items and rounds are in their orders."""
    return {
        "ticket_id": ticket_id(run, event.owner),
        "tarefa": plan.profile.name_of(event.owner),
        "destino": plan.tasks[event.owner].queue,
        "tipo": does(plan, event.owner),
        "tickets": [ticket_id(run, event.first + number) for number in range(event.count)],
        "desde": event.offset,
        "itens": event.count,
        "total": event.total,
        "nao_iniciados": [{"itens": len(one.items), **_explained(one.why)} for one in event.idle],
        **({} if event.due_at is None else {"comeca_em": event.due_at}),
    }


def _resolution(run: int, plan: Any, one: Resolution) -> dict[str, Any]:
    """What the expressions of one task gave; the parameters themselves are in its order."""
    name = plan.profile.name_of(one.ticket)
    return {"ticket_id": ticket_id(run, one.ticket), "tarefa": name, "desfecho": one.outcome, **_explained(one)}


def _explained(one: Resolution) -> dict[str, Any]:
    if one.outcome is Outcome.GO:
        return {}
    return {"onde": one.word, "expressao": one.expression, "detalhe": one.detail}


_NAMES = {
    "cause": "causa",
    "wait": "espera_s",
    "reason": "motivo",
    "deadline": "prazo",
    "retry_at": "proxima_tentativa_em",
    "notice": "notificacao",
    "detail": "detalhe",
    "passed": "atendido",
    "gate": "fan_in",
    "by": "por",
    "how": "desfecho",
    "due_at": "prazo",
    "output": "saida",
}
