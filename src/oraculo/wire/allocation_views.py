"""What the outside sees of a choice: who got a ticket, out of whom, and why the others did not."""

from __future__ import annotations

from typing import Any

from oraculo.core import events as ev
from oraculo.core.allocations import AllocatedAttempt, Allocation, Candidate
from oraculo.core.ticket_id import ticket_id


def of_ticket(allocated: AllocatedAttempt) -> dict[str, Any]:
    """The last allocation of a ticket."""
    return {"tentativa": allocated.attempt, "em": allocated.at, **_document(allocated.allocation)}


def of_event(run: int, plan: Any, event: ev.TicketAllocated) -> dict[str, Any]:
    return {
        "ticket_id": ticket_id(run, event.ticket),
        "destino": plan.tasks[event.ticket].queue or None,
        "tentativa": event.attempt,
        **_document(event.allocation),
    }


def _document(one: Allocation) -> dict[str, Any]:
    return {
        "agent_id": one.agent_id,
        "metodo": one.method,
        "nota_prioridade": one.priority_score,
        "nota_worker": one.agent_score,
        "nota_composta": one.composite_score,
        "previsto_ms": one.predicted_ms,
        "previsto_p90_ms": one.predicted_p90_ms,
        "avaliados": one.evaluated,
        "candidatos": [_candidate(candidate) for candidate in one.candidates],
        "recusados": {reason.value: count for reason, count in one.refused.items()},
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    return {
        "agent_id": one.agent_id,
        "nota": one.score,
        "saude": one.health,
        "sucesso": one.success,
        "rapidez": one.speed,
        "folga": one.room,
        "fator": one.factor,
        "afinidade": one.affinity,
        "duracao_ms": one.duration_ms,
        "em_andamento": one.in_flight,
        "motivo": one.reason,
    }
