"""What the outside sees of an orchestration, a ticket and a journal: one shape for API, CLI and dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import Any

from oraculo.core import events as ev
from oraculo.core import verdict
from oraculo.core.consolidation import aggregate, milliseconds
from oraculo.core.state import NoticeState, Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind, Phase
from oraculo.ports.store import DeadLetter, Recorded, Summary
from oraculo.wire import payloads, trace_context


def summary(one: Summary) -> dict[str, Any]:
    return {
        "correlation_id": one.correlation_id,
        "status": one.status,
        "tipo": one.tipo,
        "inicio": one.created_at,
        "fim": one.closed_at,
        "duracao_ms": milliseconds(one.created_at, one.closed_at),
        "tickets_total": one.total,
        "tickets_abertos": one.open,
        "tickets_com_falha": one.failed,
    }


def orchestration(state: Orchestration) -> dict[str, Any]:
    whole = aggregate(state) if state.closed_at is None else verdict.document(state, state.closed_at)
    return {
        "correlation_id": state.correlation_id,
        "status": state.status,
        "tipo": state.plan.tipo,
        "inicio": state.started_at,
        "fim": state.closed_at,
        "duracao_ms": whole["duracao_ms"],
        "prazo": state.deadline,
        "fan_in": {"modo": state.plan.gates[0].mode, "minimo": state.plan.gates[0].needed},
        "espera": waiting_for(state),
        "motivo_cancelamento": state.cancel_reason,
        "trace_id": None if state.traceparent is None else trace_context.trace_id(state.traceparent),
        "tickets": [ticket(state, position) for position in range(len(state.tickets))],
        "notificacoes": [notice(one) for one in state.notices],
        "fluxo_c": None if state.plan.flow is None else flow(state),
        "versao": state.version,
        "agregado": whole,
    }


def flow(state: Orchestration) -> dict[str, Any]:
    """What a plan of Fluxo C is called by others, and where it stands."""
    one = verdict.flow_of(state)
    return {
        "workflow_id": one.workflow_id,
        "plan_id": one.plan_id,
        "intent_id": one.intent_id,
        "decision_id": one.decision_id or None,
        "correlation_id": one.correlation_id,
        "risk_band": one.risk_band,
        "priority": one.priority,
        "aguarda_aprovacao": state.awaits_approval,
        "decidido_por": state.approved_by,
        "compensacao": state.undo_reason,
    }


def ticket(state: Orchestration, position: int) -> dict[str, Any]:
    shown = _ticket(state, position)
    if state.plan.flow is not None:
        spec = state.plan.flow.specs[position]
        undone_by, undoes = state.undone.get(position), spec.compensates
        shown["fluxo_c"] = {
            "task_id": spec.task_id,
            "task_type": spec.task_type,
            "description": spec.description,
            "status": verdict.ticket_status(state, position),
            "dependencies": [ticket_id(state.run, need) for need in spec.dependencies],
            "compensation_ticket_id": None if undone_by is None else ticket_id(state.run, undone_by),
            "original_ticket_id": None if undoes is None else ticket_id(state.run, undoes),
        }
    return shown


def _ticket(state: Orchestration, position: int) -> dict[str, Any]:
    task, one = state.plan.tasks[position], state.tickets[position]
    return {
        "ticket_id": ticket_id(state.run, position),
        "correlation_id": state.correlation_id,
        "tipo": task.kind,
        "fonte" if task.kind is Kind.COLETA else "executador": task.name,
        "destino": task.queue,
        "status": one.status,
        "tentativas": one.attempt,
        "max_tentativas": task.max_attempts,
        "causas": one.causes or [],
        "timeout_s": task.timeout,
        "criado_em": state.started_at,
        "despachado_em": one.dispatched_at,
        "iniciado_em": one.started_at,
        "concluido_em": one.closed_at,
        "prazo": one.due_at if one.phase is Phase.RUNNING else None,
        "proxima_tentativa_em": one.due_at if one.phase is Phase.BACKOFF else None,
        "duracao_ms": milliseconds(one.dispatched_at, one.closed_at),
        "erro": _message(one.erros),
        "erros": one.erros or [],
        "motivo": one.reason,
        "respostas_tardias": [_late(late) for late in one.late or ()],
        "traceparent": None if state.traceparent is None else _trace(state, position, one.attempt),
    }


def _trace(state: Orchestration, position: int, attempt: int) -> str | None:
    """The context that the latest message of a ticket carries."""
    return payloads.trace_of(state, position, attempt) if attempt else None


def _message(erros: list[dict[str, object]] | None) -> str | None:
    return "; ".join(str(erro.get("mensagem") or erro.get("codigo")) for erro in erros) if erros else None


def _late(late: ev.LateAnswerKept) -> dict[str, Any]:
    return {"tentativa": late.attempt, "ok": late.ok, "dados": late.dados, "erros": late.erros}


def notice(one: NoticeState) -> dict[str, Any]:
    return {
        "destino": one.target,
        "situacao": one.phase,
        "tentativas": one.attempt,
        "detalhe": one.detail,
        "proxima_em": one.due_at,
    }


def waiting_for(state: Orchestration) -> str | None:
    """One sentence that says why it is not finished."""
    if state.closed_at is not None:
        return None
    if state.awaits_approval:
        return "aguarda aprovação humana"
    phases: dict[Phase, list[str]] = {}
    for task, one in zip(state.plan.tasks, state.tickets, strict=True):
        phases.setdefault(one.phase, []).append(task.queue)
    parts = []
    for phase, text in (
        (Phase.RUNNING, "resposta de"),
        (Phase.BACKOFF, "nova tentativa de"),
        (Phase.OWED, "publicação para"),
    ):
        queues = sorted(set(phases.get(phase, ())))
        if queues:
            named = ", ".join(queues[:3]) + (f" e mais {len(queues) - 3}" if len(queues) > 3 else "")
            parts.append(f"{text} {named} ({len(phases[phase])})")
    return "aguarda " + "; ".join(parts) if parts else None


def event_name(kind: type) -> str:
    """What the outside calls an event of this class."""
    return _SNAKE[kind]


_SNAKE = {cls: "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:] for cls in ev.Event.__args__}


def events(run: int, plan: Any, recorded: Recorded, after: int = 0) -> Iterator[dict[str, Any]]:
    """The events of one step that are numbered above `after`, as the outside sees them."""
    for number, event in enumerate(recorded.events, recorded.first):
        if number > after:
            yield {"seq": number, "em": recorded.at, "evento": _SNAKE[type(event)], **_fields(run, plan, event)}


def _fields(run: int, plan: Any, event: ev.Event) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        match field.name:
            case "ticket":
                shown["ticket_id"], shown["destino"] = ticket_id(run, value), plan.tasks[value].queue
            case "undone":
                shown["desfaz"] = [ticket_id(run, item) for item in value]
            case "tickets":
                shown["tickets"] = [ticket_id(run, item if isinstance(item, int) else item[0]) for item in value]
            case "attempt":
                shown["tentativa"] = value
            case "plan":
                shown["tickets_total"] = len(value.tasks)
            case "run" | "fingerprint" | "digest":
                pass
            case "traceparent":
                if value is not None:
                    shown["trace_id"] = trace_context.trace_id(value)
            case name:
                shown[_NAMES.get(name, name)] = value
    return shown


_NAMES = {
    "cause": "causa",
    "reason": "motivo",
    "deadline": "prazo",
    "retry_at": "proxima_tentativa_em",
    "notice": "notificacao",
    "detail": "detalhe",
    "passed": "atendido",
    "gate": "fan_in",
    "by": "por",
}


def dead_letter(one: DeadLetter, *, body: bool = False) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": one.id,
        "fila": one.queue,
        "motivo": one.reason,
        "detalhe": one.detail,
        "correlation_id": one.correlation_id,
        "recebida_em": one.at,
        "tamanho": len(one.body),
    }
    if body:
        try:
            shown["corpo"] = one.body.decode("utf-8")
            shown["codificacao"] = "utf-8"
        except UnicodeDecodeError:
            shown["corpo"] = one.body.hex()
            shown["codificacao"] = "hex"
        shown["cabecalhos"] = one.headers
    return shown


def instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
