"""What the signal `ticket_completed` says: an answer that a human, or a program of the original, gives to one ticket.

It is read leniently: `ticket_id` and a result, a `ticket_id` alone (done, nothing to tell), or one object that names
its `ticket_id`. A result that says that it failed has failed, in the words of an ExecutionResult or of our own answers.
What cannot be read is ignored: an exception in a signal's handler would stop the workflow for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oraculo.core.commands import RecordResult
from oraculo.wire import strict_json
from oraculo.wire.ticket_tokens import looks_like_token

_FAILED = ("FAILED", "FAILURE", "ERROR", "ERRO", "TIMEOUT")
_UNDER_WAY = ("RUNNING", "PENDING")
_TRUE = ("true", "1", "yes")


@dataclass(frozen=True, slots=True)
class HandedToken:
    """The token that came with an answer by hand, if one did, and the answer as it came, which is kept when it is
    refused."""

    token: str | None
    body: bytes


def token_of(arguments: Sequence[Any]) -> HandedToken:
    """The token of an answer by hand: `token` in its result, or a third argument. TypeError when it is no JSON."""
    told = arguments[-1] if arguments else None
    token = told.get("token") if isinstance(told, Mapping) else None
    if len(arguments) > 2:
        token = arguments[2]
    return HandedToken(token if isinstance(token, str) else None, strict_json.compact(list(arguments)))


def without_token(answer: RecordResult) -> RecordResult:
    """The same answer, whose data do not hold the token that came with it."""
    said = strict_json.loads_trusted(answer.dados)
    if isinstance(said, dict) and looks_like_token(said.get("token")):
        return replace(answer, dados=strict_json.compact({name: said[name] for name in said if name != "token"}))
    return answer


def answer_of(arguments: Sequence[Any]) -> RecordResult | None:
    """The answer that the arguments of a signal stand for. None for work that goes on. ValueError when they name no
    ticket, TypeError when their result is no JSON."""
    if not arguments:
        raise ValueError("no ticket_id")
    first, result = arguments[0], arguments[1] if len(arguments) > 1 else None
    if isinstance(first, Mapping) and len(arguments) == 1:
        first, result = first.get("ticket_id"), first
    if not isinstance(first, str) or not first:
        raise ValueError("ticket_id is not a text")
    told = result if isinstance(result, Mapping) else {}
    status = str(told.get("status") or "").strip().upper()
    if status in _UNDER_WAY:
        return None
    failed = _failed(told, status)
    errors = [_error(told)] if failed else []
    final = any(error["definitivo"] is True for error in errors)
    return RecordResult(not failed, strict_json.compact(result), errors, definitivo=final, ticket=first)


def done(ticket_id: Any, result: Any) -> RecordResult:
    """What every answer meant before failures were honoured."""
    return RecordResult(True, strict_json.compact(result), [], ticket=ticket_id)


def _failed(told: Mapping[str, Any], status: str) -> bool:
    inner = told.get("result")
    unsuccessful = told.get("success") is False or (isinstance(inner, Mapping) and inner.get("success") is False)
    return status in _FAILED or unsuccessful or (bool(told.get("erros")) and status != "OK")


def _error(told: Mapping[str, Any]) -> dict[str, object]:
    """The error as answers write it: of `erros`, or of the fields of an ExecutionResult."""
    listed = told.get("erros")
    first = listed[0] if isinstance(listed, list) and listed else listed
    if isinstance(first, Mapping):
        return {"codigo": "erro", "definitivo": False, **first}
    inner = told.get("result")
    about = inner.get("metadata") if isinstance(inner, Mapping) else told.get("metadata")
    metadata = about if isinstance(about, Mapping) else {}
    final = any(str(metadata.get(name)).strip().lower() in _TRUE for name in ("definitivo", "non_retryable"))
    error: dict[str, object] = {"codigo": str(metadata.get("error_type") or "erro")[:100], "definitivo": final}
    text = first if isinstance(first, str) else told.get("error_message") or told.get("error")
    if text:
        error["mensagem"] = str(text)
    return error
