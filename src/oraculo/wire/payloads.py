"""One payload per event type: the orders we write and the answers we read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from oraculo.core.commands import RecordResult
from oraculo.core.consolidation import collected
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id, ticket_id
from oraculo.core.vocabulary import Kind, TipoEvento
from oraculo.errors import WireError
from oraculo.wire import names, strict_json, trace_context
from oraculo.wire.mensagem import Mensagem, check_attempt

NO_HEADERS: Mapping[str, str] = {}
_NAME_KEY = {Kind.COLETA: "fonte", Kind.EXECUCAO: "executador"}


def orders(state: Orchestration, tickets: Iterable[tuple[int, int]], now: datetime) -> Iterable[tuple[str, str, bytes]]:
    """(queue, message_id, body) of each (position, attempt). What is collected is written once, however many get it."""
    given: dict[int | None, bytes] = {}
    for position, attempt in tickets:
        task = state.plan.tasks[position]
        identity = ticket_id(state.run, position)
        message_id = f"{identity}.{attempt}"
        payload: dict[str, Any] = {_NAME_KEY[task.kind]: task.name, "parametros": task.parametros}
        if task.kind is Kind.EXECUCAO:
            if task.after not in given:
                given[task.after] = strict_json.dumps(collected(state, position))
            payload["dados"] = given[task.after]
        envelope = {
            "correlation_id": state.correlation_id,
            "tipo_evento": task.kind.order,
            "payload": payload,
            "timestamp": now,
            "message_id": message_id,
            "ticket_id": identity,
            "tentativa": attempt,
            "prazo": min(now + task.timeout, state.deadline),
            "fila_resposta": names.RESULTS,
        }
        if state.traceparent is not None:
            envelope["traceparent"] = trace_of(state, position, attempt)
        yield task.queue, message_id, strict_json.compact(envelope)


def trace_of(state: Orchestration, position: int, attempt: int) -> str:
    """The trace context of a message: whoever works on it works within the span of that attempt."""
    assert state.traceparent is not None
    return trace_context.child(state.traceparent, trace_context.attempt_span(state.run, position, attempt))


def answer(message: Mensagem, raw: bytes, headers: Mapping[str, str] = NO_HEADERS) -> RecordResult:
    """A result message → the command. Refuses what is not a result, or what says nothing usable."""
    if message.tipo_evento is TipoEvento.RESULTADO_COLETA:
        kind = Kind.COLETA
    elif message.tipo_evento is TipoEvento.RESULTADO_EXECUCAO:
        kind = Kind.EXECUCAO
    else:
        raise WireError(
            "unexpected_event",
            f"{message.tipo_evento.value} is not a result; allowed here: resultado_coleta, resultado_execucao",
        )
    payload = message.payload
    ticket, attempt = message.ticket_id, message.tentativa
    echoed = _echoes(payload) if "ticket_id" in payload or "tentativa" in payload else {}
    ticket = ticket or echoed.get("ticket_id")
    attempt = attempt or echoed.get("tentativa")
    name = payload.get(_NAME_KEY[kind])
    if name is not None and not isinstance(name, str):
        raise WireError("invalid_field", f"payload.{_NAME_KEY[kind]} is not a string")
    status = payload.get("status")
    erros = _errors(payload.get("erros"))
    failed = status == "erro" or (bool(erros) and status != "ok")
    if failed and not erros:
        erros = [{"codigo": "erro", "mensagem": "o worker respondeu erro sem dizer qual", "definitivo": False}]
    if kind is Kind.COLETA and "dados" in payload:
        dados = payload["dados"]
    else:
        kept = {key: value for key, value in payload.items() if key not in echoed} if echoed else payload
        dados = kept if kind is Kind.EXECUCAO else _without_form(kept)
    return RecordResult(
        ok=not failed,
        dados=strict_json.compact(dados),
        erros=erros,
        definitivo=failed and any(erro.get("definitivo") is True for erro in erros),
        ticket=ticket,
        attempt=attempt,
        kind=kind,
        name=name,
        digest=zlib.crc32(raw) or 1,
        traceparent=trace_context.of_message(message.traceparent, headers),
    )


def _echoes(payload: dict[str, Any]) -> dict[str, Any]:
    """What a payload echoes of its order. A result may have a `ticket_id` or a `tentativa` of its own, which are not
    ours and stay where they are."""
    found: dict[str, Any] = {}
    ticket, attempt = payload.get("ticket_id"), payload.get("tentativa")
    if isinstance(ticket, str) and parse_ticket_id(ticket) is not None:
        found["ticket_id"] = ticket
    if attempt is not None:
        with suppress(WireError):
            found["tentativa"] = check_attempt("payload.tentativa", attempt)
    return found


def _without_form(payload: dict[str, Any]) -> dict[str, Any] | None:
    """A collection that has no `dados`: whatever else it says is kept as its data."""
    return {key: value for key, value in payload.items() if key not in ("fonte", "status", "erros")} or None


def _errors(value: Any) -> list[dict[str, object]]:
    """Errors as the contract writes them; plain texts and single objects are accepted too."""
    if value is None or value == "" or value == []:
        return []
    items = value if isinstance(value, list) else [value]
    errors: list[dict[str, object]] = []
    for item in items:
        if isinstance(item, dict):
            errors.append({"codigo": "erro", "mensagem": "", "definitivo": False, **item})
        elif isinstance(item, str):
            errors.append({"codigo": "erro", "mensagem": item, "definitivo": False})
        else:
            raise WireError("invalid_field", "payload.erros holds something that is neither an object nor a text")
    return errors
