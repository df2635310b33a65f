"""Corrections of dead letters, as proposals: other bytes that the orchestrator might take, and why. Nothing is sent.

A proposal never makes up what only its sender knows: an id that nothing names, a value that is not acceptable, a token.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oraculo.client.results import DeadLetterDetails, RunDetails, TicketDetails

PROPOSALS_MAX = 10
LITERAL_MAX_BYTES = 64 * 1024  # of what is read as a literal of Python
ANSWERED_KINDS = {"resultado_coleta": "fonte", "resultado_execucao": "executador"}
BY_HAND = {
    "unauthenticated": "the answer has no right token, and only the worker that got the order can give it",
    "wrong_attempt": "it answers an attempt that was never made: look at the worker that sent it",
    "too_many_answers": "the ticket has other answers already: look at the worker that sent it",
    "unknown_correlation": "no orchestration has this id: look at who sent it",
    "conflict": "the id was used before with another request: hand it in with an id of its own",
    "invalid_field": "the detail names the field and what is allowed; only the sender knows what it meant",
}
UNKNOWN_REASON = "nothing can be proposed; the detail says why it was refused"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What could be handed in. `body` None: the letter as it is."""

    why: str
    body: str | None


def proposals(letter: DeadLetterDetails, run: RunDetails | None) -> tuple[list[Proposal], str]:
    """What could be handed in instead of the letter, and, when there is nothing, what a person has to do. `run` is the
    orchestration that the letter names, where there is one."""
    if letter["motivo"] == "attempts_used_up":
        return [Proposal("the order gets another attempt, written from its orchestration", None)], ""
    body = letter.get("corpo")
    if body is None or letter.get("codificacao") != "utf-8":
        return [], "its bytes are no text"
    found = _for_reason(letter, body, run)[:PROPOSALS_MAX]
    return found, "" if found else BY_HAND.get(letter["motivo"], UNKNOWN_REASON)


def _for_reason(letter: DeadLetterDetails, body: str, run: RunDetails | None) -> list[Proposal]:
    match letter["motivo"]:
        case "not_json":
            return _as_json(body)
        case "missing_field":
            return _with_instant(body, letter["recebida_em"])
        case "ambiguous" | "unknown_ticket":
            return _with_ticket(body, run)
        case "handler_error":
            return [Proposal("the orchestrator failed on it, not the message: as it is, once that is mended", None)]
    return []


def _as_json(body: str) -> list[Proposal]:
    """Text that only differs from JSON by a mark at its beginning, or by being written as Python writes it."""
    plain = body.lstrip("\ufeff").strip().strip("\x00")
    value = _object(plain)
    if value is not None:
        return [Proposal("the same JSON without the characters around it", plain)]
    if len(plain) <= LITERAL_MAX_BYTES:
        try:
            literal = ast.literal_eval(plain)
            written = json.dumps(literal, ensure_ascii=False, allow_nan=False)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return []
        if isinstance(literal, dict):
            return [Proposal("it is written as Python writes it; the same as JSON", written)]
    return []


def _with_instant(body: str, received_at: str) -> list[Proposal]:
    """Only the instant can be told from outside: when the message came."""
    value = _object(body)
    if value is None or "timestamp" in value:
        return []
    if {"correlation_id", "tipo_evento", "payload"} - value.keys():
        return []
    return [Proposal("with the instant at which it came as timestamp", _text({**value, "timestamp": received_at}))]


def _with_ticket(body: str, run: RunDetails | None) -> list[Proposal]:
    """The answer with the id of each open ticket that it could be for."""
    value = _object(body)
    if value is None or run is None:
        return []
    return [
        Proposal(
            f"as the answer of {_named(ticket)}, which is {ticket['status']} since {ticket['criado_em']}",
            _text({**value, "ticket_id": ticket["ticket_id"]}),
        )
        for ticket in _candidates(value, run["tickets"])
    ]


def _candidates(value: Mapping[str, Any], tickets: Sequence[TicketDetails]) -> list[TicketDetails]:
    key = ANSWERED_KINDS.get(str(value.get("tipo_evento")))
    payload = value.get("payload")
    if key is None or not isinstance(payload, Mapping):
        return []
    name = payload.get(key)
    return [
        one
        for one in tickets
        if one["status"] in ("pendente", "em_execucao") and one.get(key) is not None and name in (None, one.get(key))
    ]


def _named(ticket: TicketDetails) -> str:
    return str(ticket.get("tarefa") or ticket.get("fonte") or ticket.get("executador")) + f" ({ticket['ticket_id']})"


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
