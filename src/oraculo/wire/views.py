"""What the outside sees of an orchestration, a ticket and a dead letter: one shape for API, CLI and dashboard."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from oraculo.core import events as ev
from oraculo.core import policing, sentences
from oraculo.core.blocks import body_at
from oraculo.core.consolidation import aggregate, milliseconds
from oraculo.core.notice_state import NoticeState
from oraculo.core.pausing import PauseState
from oraculo.core.plan import Plan
from oraculo.core.policies import THE_PLAN
from oraculo.core.reuse import Origin
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind, Phase, Status
from oraculo.ports.catalogue import Summary
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.unique_keys import KeyHolder
from oraculo.wire import allocation_views, child_views, payloads, policy_views, quarantine, trace_context, wait_views
from oraculo.wire.flow import sections
from oraculo.wire.hold_views import HoldOf, nothing_held, sentence
from oraculo.wire.result import document
from oraculo.wire.ticket_tokens import without_signatures
from oraculo.wire.unique_rules import unica_of


def summary(one: Summary) -> dict[str, Any]:
    return {
        "correlation_id": one.correlation_id,
        "status": one.status,
        "tipo": one.tipo,
        "rotulos": one.labels,
        "inicio": one.created_at,
        "fim": one.closed_at,
        "duracao_ms": milliseconds(one.created_at, one.closed_at),
        "tickets_total": one.total,
        "tickets_abertos": one.open,
        "tickets_com_falha": one.failed,
        "pausada": one.paused_at is not None,
    }


def orchestration(
    state: Orchestration, language: Language = DEFAULT_LANGUAGE, hold: HoldOf = nothing_held
) -> dict[str, Any]:
    """The whole orchestration; sentences are in `language`, but for the aggregate, which is one document for all."""
    whole = _so_far(state) if state.closed_at is None else document(state, state.closed_at)
    return {
        "correlation_id": local_name(state.correlation_id),
        "status": state.status,
        "tipo": state.plan.tipo,
        "rotulos": state.plan.labels,
        "inicio": state.started_at,
        "fim": state.closed_at,
        "duracao_ms": whole["duracao_ms"],
        "prazo": state.deadline,
        "fan_in": _fan_in(state.plan),
        "espera": waiting_for(state, language, hold),
        "pausada": state.paused is not None,
        "pausa": pause(state),
        **({} if state.priority is None else {"prioridade": state.priority}),
        "desfazendo": undoing(state),
        "motivo_cancelamento": state.cancel_reason,
        **({} if state.actor is None else {"ator": state.actor}),
        **({} if state.origin is None else origin(state.origin)),
        **({} if state.policy is None else {"politicas": policy_views.of_run(state)}),
        **({} if state.plan.unique is None else {"unica": unica_of(state.plan.unique)}),
        **({} if state.plan.parent is None else {"pai": child_views.parent(state.plan.parent)}),
        "trace_id": None if state.traceparent is None else trace_context.trace_id(state.traceparent),
        "tickets": [ticket(state, position, language) for position in range(len(state.tickets))],
        "notificacoes": [notice(one) for one in state.notices],
        "fluxo_c": sections.of_orchestration(state, language),
        "versao": state.version,
        "agregado": whole,
    }


def pause(state: Orchestration) -> dict[str, Any] | None:
    """Who paused it, since when and why; None when it is not paused."""
    paused = state.paused
    return None if paused is None else {"ator": paused.actor, "desde": paused.since, "motivo": paused.reason}


def merges(holder: KeyHolder) -> dict[str, Any]:
    """How many requests were merged into a run, and the last of them, the newest first."""
    recent = [
        {"em": one.at, "correlation_id": one.correlation_id, "ator": one.actor} for one in reversed(holder.recent)
    ]
    return {"total": holder.merged, "recentes": recent}


def origin(one: Origin) -> dict[str, Any]:
    """The run that a retry tries again, and what it does again."""
    return {
        "origem": local_name(one.correlation_id),
        **({"de": one.mode} if one.task is None else {"tarefa": one.task}),
    }


def _so_far(state: Orchestration) -> dict[str, Any]:
    """The aggregate of what has not ended; tasks that wait say for what."""
    whole = aggregate(state)
    for position in wait_views.held(state) if "tarefas" in whole else ():
        whole["tarefas"][state.plan.profile.name_of(position)]["espera"] = wait_views.document(state, position)
    return whole


def _fan_in(plan: Plan) -> dict[str, Any]:
    """The fan-in of a whole request; a plan of named tasks has one for each task instead."""
    return {} if plan.profile.names else {"modo": plan.gates[0].mode, "minimo": plan.gates[0].needed}


def ticket(state: Orchestration, position: int, language: Language = DEFAULT_LANGUAGE) -> dict[str, Any]:
    task, one = state.plan.tasks[position], state.tickets[position]
    erros, wait = sentences.errors_of(one, language), wait_views.document(state, position)
    return {
        "ticket_id": ticket_id(state.run, position),
        "correlation_id": local_name(state.correlation_id),
        "tipo": task.kind,
        does(state.plan, position).key: child_views.destination(state, position) if wait is None else wait,
        "destino": task.queue or None,
        "status": one.status,
        "tentativas": one.attempt,
        "max_tentativas": task.max_attempts,
        "causas": one.causes or [],
        "timeout_s": task.timeout or None,
        "criado_em": state.started_at,
        "despachado_em": one.dispatched_at,
        "iniciado_em": one.started_at,
        "concluido_em": one.closed_at,
        "prazo": one.due_at if one.phase in (Phase.RUNNING, Phase.GROWN, Phase.HELD) else None,
        "proxima_tentativa_em": one.due_at if one.phase is Phase.BACKOFF else None,
        "duracao_ms": milliseconds(one.dispatched_at, one.closed_at),
        "erro": sentences.message(erros) if erros else None,
        "erros": erros,
        "motivo": sentences.say_optional(one.reason, language),
        "respostas_tardias": [_without_effect(late, language) for late in one.late or ()],
        "respostas_conflitantes": [_without_effect(other, language) for other in one.conflicts or ()],
        "traceparent": None if state.traceparent is None else _trace(state, position, one.attempt),
        **({} if one.allocated is None else {"alocacao": allocation_views.of_ticket(one.allocated)}),
        **({"reaproveitada": True} if one.reused else {}),
        **_named(state, position),
        **sections.of_ticket(state, position, language),
    }


def does(plan: Plan, position: int) -> Kind:
    """What a task does; of a map or a loop: what it does for each item, or in each round."""
    spec = body_at(plan, position)
    return plan.tasks[position].kind if spec is None else spec.task.kind


def _named(state: Orchestration, position: int) -> dict[str, Any]:
    name = state.plan.profile.name_of(position)
    if name is None:
        return {}
    named: dict[str, Any] = {"tarefa": name}
    if (priority := state.plan.profile.priority_of(position)) is not None:
        named["prioridade"] = priority
    block = None if state.blocks is None else state.blocks.of(position)
    if position in state.undone:
        named["desfeito_por"] = ticket_id(state.run, state.undone[position])
    if state.ending is not None and position >= state.undoes:
        undone = state.undoing[position - state.undoes]
        block = None if state.blocks is None else state.blocks.of(undone)
        place = {} if block is None else {"indice": block.number(undone)}
        return {**named, "desfaz": ticket_id(state.run, undone), **place}
    if block is not None:
        return {**named, "indice": block.number(position)}
    if state.plan.tasks[position].kind.grows:
        return {**named, "itens": items(state, position)}
    return named


def undoing(state: Orchestration) -> dict[str, Any] | None:
    """How far undoing is, and how the run ends then; None when nothing is being undone."""
    if state.ending is None or state.closed_at is not None:
        return None
    by_status = Counter(ticket.status for ticket in state.tickets[state.undoes :])
    failed = by_status[Status.ERRO] + by_status[Status.TIMEOUT]
    return {
        "desfecho": state.ending,
        "motivo": state.undo_reason,
        "total": by_status.total(),
        "concluidos": by_status[Status.CONCLUIDA],
        "falhas": failed,
        "abertos": state.open,
    }


def items(state: Orchestration, position: int) -> dict[str, int]:
    """How the items of a map or the rounds of a loop stand."""
    by_status = Counter(state.tickets[item].status for item in state.items(position))
    failed = by_status[Status.ERRO] + by_status[Status.TIMEOUT]
    return {
        "total": by_status.total(),
        "concluidos": by_status[Status.CONCLUIDA],
        "falhas": failed,
        "ignorados": by_status[Status.IGNORADA],
        "cancelados": by_status[Status.CANCELADA],
        "abertos": by_status[Status.PENDENTE] + by_status[Status.EM_EXECUCAO],
    }


def _trace(state: Orchestration, position: int, attempt: int) -> str | None:
    """The context that the latest message of a ticket carries."""
    return payloads.trace_of(state, position, attempt) if attempt else None


def _without_effect(kept: ev.LateAnswerKept | ev.ConflictingAnswerKept, language: Language) -> dict[str, Any]:
    erros = sentences.errors_said(kept, language)
    return {"tentativa": kept.attempt, "ok": kept.ok, "dados": kept.dados, "erros": erros}


def notice(one: NoticeState) -> dict[str, Any]:
    return {
        "destino": one.target,
        "situacao": one.phase,
        "tentativas": one.attempt,
        "detalhe": one.detail,
        "proxima_em": one.due_at,
    }


_WAITS: dict[Language, dict[str, str]] = {
    "pt": {
        "approval": "aguarda aprovação humana", "waits": "aguarda", "more": "e mais", "undoes": "desfazendo",
        Phase.RUNNING: "resposta de", Phase.BACKOFF: "nova tentativa de", Phase.OWED: "publicação para",
        "round": "a próxima rodada de", Phase.JUDGED: "as políticas sobre", "plan": "as políticas sobre o plano",
        "paused": "pausada", "by": "por", "since": "desde", "because": "porque",
    },
    "en": {
        "approval": "waits for a human approval", "waits": "waits for", "more": "and", "undoes": "undoing",
        Phase.RUNNING: "an answer of", Phase.BACKOFF: "another attempt of", Phase.OWED: "publishing to",
        "round": "the next round of", Phase.JUDGED: "the policies on", "plan": "the policies on the plan",
        "paused": "paused", "by": "by", "since": "since", "because": "because",
    },
}  # fmt: skip


def waiting_for(state: Orchestration, language: Language = DEFAULT_LANGUAGE, hold: HoldOf = nothing_held) -> str | None:
    """One sentence that says why it is not finished."""
    words = _WAITS[language]
    if state.closed_at is not None:
        return None
    if state.paused is not None:
        return _paused(state.paused, words)
    if state.ending is not None:
        return f"{words['undoes']} {len(state.tickets) - state.undoes - state.open}/{len(state.tickets) - state.undoes}"
    if state.awaits_approval:
        return words["approval"]
    phases: dict[str, list[str]] = {}
    for task, one in zip(state.plan.tasks, state.tickets, strict=True):
        paused = one.phase is Phase.BACKOFF and not one.attempt
        phases.setdefault("round" if paused else one.phase, []).append(task.queue or task.kind.value)
    parts = []
    for phase in (Phase.RUNNING, Phase.BACKOFF, Phase.OWED, Phase.JUDGED, "round"):
        queues = sorted(set(phases.get(phase, ())))
        if queues:
            named = ", ".join(queues[:3]) + (f" {words['more']} {len(queues) - 3}" if len(queues) > 3 else "")
            parts.append(f"{words[phase]} {named} ({len(phases[phase])})")
    parts += [said for queue in sorted(set(phases.get(Phase.OWED, ()))) if (said := sentence(queue, hold, language))]
    parts += wait_views.sentences(state, language)
    if THE_PLAN in policing.owed(state):
        parts.append(words["plan"])
    return f"{words['waits']} {'; '.join(parts)}" if parts else None


def _paused(paused: PauseState, words: dict[str, str]) -> str:
    by = f" {words['by']} {paused.actor}" if paused.actor else ""
    why = f" {words['because']} {paused.reason}" if paused.reason else ""
    return f"{words['paused']}{by} {words['since']} {instant(paused.since)}{why}"


def dead_letter(one: DeadLetter, *, body: bool = False) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": one.id,
        "fila": one.queue,
        "motivo": one.reason,
        "detalhe": one.detail,
        "tentativas": quarantine.attempts_of(one),
        "correlation_id": one.correlation_id,
        "recebida_em": one.at,
        "tamanho": one.size,
    }
    if body:
        content = without_signatures(one.body)
        try:
            shown["corpo"] = content.decode("utf-8")
            shown["codificacao"] = "utf-8"
        except UnicodeDecodeError:
            shown["corpo"] = content.hex()
            shown["codificacao"] = "hex"
        shown["cabecalhos"] = {
            name: without_signatures(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
            for name, value in one.headers.items()
        }
    return shown


def instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
