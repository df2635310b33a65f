"""One result out of many: the aggregate document, complete at the end and "so far" before it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from oraculo.core.blocks import body_at
from oraculo.core.sentences import errors, errors_of
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Kind, Status

_GOOD = (Status.CONCLUIDA, Status.PARCIAL)
FAILURES_MAX = 1000  # items of a map that are told of


def milliseconds(since: datetime | None, until: datetime | None) -> int | None:
    if since is None or until is None:
        return None
    return round((until - since).total_seconds() * 1000)


def aggregate(state: Orchestration) -> dict[str, Any]:
    """The document of contracts §4. JSON text that came from workers stays as bytes; the wire splices it in."""
    coletas: list[dict[str, Any]] = []
    execucoes: list[dict[str, Any]] = []
    profile = state.plan.profile
    has_specs = profile.has_specs
    planned = len(profile.names) or None  # items are told with their map, and what undoes with what it undoes
    for position, (task, ticket) in enumerate(zip(state.plan.tasks[:planned], state.tickets[:planned], strict=True)):
        if not task.kind.is_sent:
            continue
        outcome: dict[str, Any] = {
            "status": ticket.status,
            "erros": errors_of(ticket) if ticket.erros or ticket.fault else [],
            "tentativas": ticket.attempt,
            "duracao_ms": milliseconds(ticket.dispatched_at, ticket.closed_at),
        }
        if has_specs:
            outcome |= profile.task_fields(position)
        if task.kind is Kind.COLETA:
            coletas.append({"fonte": task.name, "dados": ticket.dados, **outcome})
        else:
            execucoes.append({"executador": task.name, "resultado": ticket.dados, **outcome})
    return {
        "correlation_id": local_name(state.correlation_id),
        "status": state.status,
        "coletas": coletas,
        "execucoes": execucoes,
        **(_named(state) if profile.names else {}),
        "inicio": state.started_at,
        "fim": state.closed_at,
        "duracao_ms": milliseconds(state.started_at, state.closed_at),
    }


def _named(state: Orchestration) -> dict[str, Any]:
    """What the aggregate of a plan with named tasks has besides."""
    fault = state.output_fault
    failed = {} if fault is None else {"erros": errors(None, fault)}
    return {"tarefas": _tasks(state), "saida": state.output, **failed}


def _tasks(state: Orchestration) -> dict[str, Any]:
    """The outcome of each task under its name."""
    return {
        name: {
            "status": ticket.status,
            **_values(state, position, ticket),
            **_undone(state, position),
            "erros": errors_of(ticket),
            "tentativas": ticket.attempt,
            "duracao_ms": milliseconds(ticket.dispatched_at, ticket.closed_at),
        }
        for position, (name, ticket) in enumerate(zip(state.plan.profile.names, state.tickets, strict=False))
    }


def _undone(state: Orchestration, position: int) -> dict[str, Any]:
    """How undoing a task went, where it is undone; of items of a map: how many are undone, and how that went."""
    if state.ending is None:
        return {}
    undoes, items = state.undone.get(position), state.items(position)
    told: dict[str, Any] = {} if undoes is None else {"desfeita": state.tickets[undoes].status}
    found = Counter(state.tickets[state.undone[item]].status for item in items if item in state.undone)
    if found:
        failed = found[Status.ERRO] + found[Status.TIMEOUT]
        told["itens_desfeitos"] = {
            "total": found.total(),
            "concluidos": found[Status.CONCLUIDA],
            "falhas": failed,
        }
    return told


def _values(state: Orchestration, position: int, ticket: Ticket) -> dict[str, Any]:
    kind = state.plan.tasks[position].kind
    if kind is not Kind.MAPA:
        return {kind.offers: last_result(ticket) if kind is Kind.REPETE else ticket.dados}
    total = len(state.items(position))
    return {kind.offers: results(state, position), "total": total, "falhas": failures(state, position)}


def last_result(loop: Ticket) -> bytes:
    """What the last round of a loop gave, as far as there is one; null when the loop failed."""
    failed = loop.status.final and loop.status not in _GOOD
    return b"null" if failed else loop.dados


def results(state: Orchestration, position: int) -> bytes:
    """JSON list: what the items of a map gave, in their order, null where one gave nothing. Null before it began and
    when it failed."""
    owner = state.tickets[position]
    if owner.attempt == 0 or (owner.status.final and owner.status not in _GOOD):
        return b"null"
    items = (state.tickets[p] for p in state.items(position))
    return b"[" + b",".join(one.dados if one.status in _GOOD else b"null" for one in items) + b"]"


def failures(state: Orchestration, position: int) -> list[dict[str, Any]]:
    """The first items of a map that failed: `indice`, `status`, `codigo`, `mensagem`."""
    told: list[dict[str, Any]] = []
    for index, p in enumerate(state.items(position)):
        one = state.tickets[p]
        if one.status in (Status.ERRO, Status.TIMEOUT):
            first = next(iter(errors_of(one)), {})
            said = {"codigo": first.get("codigo"), "mensagem": first.get("mensagem")}
            told.append({"indice": index, "status": one.status, **said})
            if len(told) == FAILURES_MAX:
                break
    return told


def collected(state: Orchestration, position: int) -> list[dict[str, Any]]:
    """What a task receives of the tasks before it: one entry each, also for a task that gave nothing. A task that had
    not ended when this one began is `pendente`, whenever the order is written."""
    inputs = state.plan.profile.gives(position)
    if inputs is not None:
        since = state.tickets[position].dispatched_at
        return [_collected(state, p, state.tickets[p], since) for p in inputs]
    after = state.plan.tasks[position].after
    waited = () if after is None else state.plan.gates[after].inputs
    return [_collected(state, p, state.tickets[p]) for p in waited]


def _collected(state: Orchestration, position: int, ticket: Ticket, since: datetime | None = None) -> dict[str, Any]:
    task, dados = state.plan.tasks[position], ticket.dados
    spec = body_at(state.plan, position) if task.kind.grows else None
    if spec is not None:
        dados = results(state, position) if task.kind is Kind.MAPA else last_result(ticket)
        task = spec.task
    entry: dict[str, Any] = {task.kind.key: task.name or None, "status": ticket.status, "dados": dados}
    if since is not None and (ticket.closed_at is None or ticket.closed_at > since):
        entry |= {"status": Status.PENDENTE, "dados": None}
    name = state.plan.profile.name_of(position)
    return entry if name is None else {"tarefa": name, **entry}
