"""What the outside sees of children: who is whose."""

from __future__ import annotations

from typing import Any

from oraculo.core.children import child_id
from oraculo.core.plan import Parent
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind


def parent(of: Parent) -> dict[str, Any]:
    """The orchestration that a child belongs to, and the ticket there that it is."""
    return {
        "correlation_id": local_name(of.correlation_id),
        "ticket_id": ticket_id(of.run, of.position),
        "tentativa": of.attempt,
    }


def destination(state: Orchestration, position: int) -> str:
    """The destination of a ticket; of a child the id that it has, or will have."""
    task = state.plan.tasks[position]
    if task.kind is not Kind.FILHA:
        return task.name
    return local_name(child_id(state, position, max(1, state.tickets[position].attempt)))
