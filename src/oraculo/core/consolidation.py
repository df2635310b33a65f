"""One result out of many: the aggregate document, complete at the end and "so far" before it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from oraculo.core.state import Orchestration, Ticket
from oraculo.core.vocabulary import Kind


def milliseconds(since: datetime | None, until: datetime | None) -> int | None:
    if since is None or until is None:
        return None
    return round((until - since).total_seconds() * 1000)


def aggregate(state: Orchestration) -> dict[str, Any]:
    """The document of contracts §4. JSON text that came from workers stays as bytes; the wire splices it in."""
    coletas: list[dict[str, Any]] = []
    execucoes: list[dict[str, Any]] = []
    flow = state.plan.flow
    for position, (task, ticket) in enumerate(zip(state.plan.tasks, state.tickets, strict=True)):
        outcome: dict[str, Any] = {
            "status": ticket.status,
            "erros": ticket.erros or [],
            "tentativas": ticket.attempt,
            "duracao_ms": milliseconds(ticket.dispatched_at, ticket.closed_at),
        }
        if flow is not None:
            outcome["task_id"] = flow.specs[position].task_id
        if task.kind is Kind.COLETA:
            coletas.append({"fonte": task.name, "dados": ticket.dados, **outcome})
        else:
            execucoes.append({"executador": task.name, "resultado": ticket.dados, **outcome})
    return {
        "correlation_id": state.correlation_id,
        "status": state.status,
        "coletas": coletas,
        "execucoes": execucoes,
        "inicio": state.started_at,
        "fim": state.closed_at,
        "duracao_ms": milliseconds(state.started_at, state.closed_at),
    }


def collected(state: Orchestration, position: int) -> list[dict[str, Any]]:
    """What a task receives of the tasks before its gate: one entry each, also for those that gave nothing."""
    after = state.plan.tasks[position].after
    if after is None:
        return []
    return [_collected(state, p, state.tickets[p]) for p in state.plan.gates[after].inputs]


def _collected(state: Orchestration, position: int, ticket: Ticket) -> dict[str, Any]:
    task = state.plan.tasks[position]
    key = "fonte" if task.kind is Kind.COLETA else "executador"
    return {key: task.name, "status": ticket.status, "dados": ticket.dados}
