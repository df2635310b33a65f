"""One payload per event type: the orders we write and the answers we read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson

from oraculo.core.commands import RecordResult
from oraculo.core.consolidation import collected
from oraculo.core.digests import digest_of
from oraculo.core.state import Orchestration
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.core.ticket_id import parse_ticket_id, recent_ticket_id, ticket_id
from oraculo.core.vocabulary import Kind, TipoEvento
from oraculo.errors import WireError
from oraculo.wire import names, strict_json, trace_context
from oraculo.wire.mensagem import Mensagem, check_attempt
from oraculo.wire.ticket_tokens import HEADER as TOKEN_HEADER
from oraculo.wire.ticket_tokens import looks_like_token

NO_HEADERS: Mapping[str, str] = {}
WORK_MAX_MS = 366 * 86_400_000
_NAME_KEY = {Kind.COLETA: "fonte", Kind.EXECUCAO: "executador"}


# Orchestration, position, until when → what an order says of its data instead of carrying them; None: it carries them.
Refer = Callable[[Orchestration, int, datetime], dict[str, Any] | None]
Issue = Callable[[str, str, int, str], str]  # message_id, ticket, attempt, correlation_id → the token of the attempt


def data_key(state: Orchestration, position: int) -> Any:
    """What tells apart the collected data of two orders of one orchestration."""
    inputs = state.plan.profile.gives(position)
    return state.plan.tasks[position].after if inputs is None else (inputs, state.tickets[position].dispatched_at)


def data_of(state: Orchestration, position: int) -> Sequence[int]:
    """The positions whose data the order of a task carries."""
    inputs = state.plan.profile.gives(position)
    if inputs is not None:
        return inputs
    after = state.plan.tasks[position].after
    return () if after is None else state.plan.gates[after].inputs


def orders(
    state: Orchestration,
    tickets: Iterable[tuple[int, int]],
    now: datetime,
    refer: Refer | None = None,
    issue: Issue | None = None,
) -> Iterable[tuple[str, str, bytes]]:
    """(queue, message_id, body) of each (position, attempt). What is collected is written once, however many get it."""
    given: dict[Any, orjson.Fragment] = {}  # by what is collected
    name = local_name(state.correlation_id)
    replies = (
        names.RESULTS if name is state.correlation_id else in_tenant(tenant_of(state.correlation_id), names.RESULTS)
    )
    identify = ticket_id if issue is None else recent_ticket_id  # its token was prepared a moment ago
    for position, attempt in tickets:
        task = state.plan.tasks[position]
        identity = identify(state.run, position)
        message_id = f"{identity}.{attempt}"
        parameters = orjson.Fragment(state.parameters(position))
        payload: dict[str, Any] = {_NAME_KEY[task.kind]: task.name, "parametros": parameters}
        prazo = state.by_deadline(now + task.timeout)
        reference = None if refer is None else refer(state, position, prazo)
        if reference is not None:
            payload["dados_ref"] = reference
        elif task.kind is Kind.EXECUCAO:
            key = data_key(state, position)
            if key not in given:
                given[key] = orjson.Fragment(strict_json.dumps(collected(state, position)))
            payload["dados"] = given[key]
        envelope = {
            "correlation_id": name,
            "tipo_evento": task.kind.order,
            "payload": payload,
            "timestamp": now,
            "message_id": message_id,
            "ticket_id": identity,
            "tentativa": attempt,
            "prazo": prazo,
            "fila_resposta": replies,
        }
        if state.traceparent is not None:
            envelope["traceparent"] = trace_of(state, position, attempt)
        if issue is not None:
            envelope["token"] = issue(message_id, identity, attempt, name)
        yield task.queue, message_id, strict_json.compact(envelope)


def trace_of(state: Orchestration, position: int, attempt: int) -> str:
    """The trace context of a message: work on it belongs to the span of that attempt."""
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
    echoed = _echoes(payload) if "ticket_id" in payload or "tentativa" in payload or "token" in payload else {}
    ticket = ticket or echoed.get("ticket_id")
    attempt = attempt or echoed.get("tentativa")
    name = _name(payload, kind)
    status = payload.get("status")
    erros = _errors(payload.get("erros"))
    failed = status == "erro" or (bool(erros) and status != "ok")
    if kind is Kind.COLETA and "dados" in payload:
        dados = payload["dados"]
    else:
        kept = {key: value for key, value in payload.items() if key not in echoed} if echoed else payload
        dados = kept if kind is Kind.EXECUCAO else _without_form(kept)
    text = strict_json.compact(dados)
    return RecordResult(
        ok=not failed,
        dados=text,
        erros=erros,
        definitivo=failed and any(erro.get("definitivo") is True for erro in erros),
        ticket=ticket,
        attempt=attempt,
        kind=kind,
        name=name,
        digest=digest_of(raw, not failed, text, erros),
        traceparent=trace_context.of_message(message.traceparent, headers),
        work_ms=_work_ms(message.extra.get("duracao_ms")) if message.extra else None,
    )


def _work_ms(said: object) -> int | None:
    """How long the worker says that it had the order; what is no such length tells nothing, and is no fault."""
    return said if type(said) is int and 0 <= said <= WORK_MAX_MS else None


def _name(payload: dict[str, Any], kind: Kind) -> str | None:
    """The name that a worker gives itself. An executor that answers like a collector may call itself an executor."""
    key = _NAME_KEY[kind]
    name = payload.get(key)
    if name is None and kind is Kind.COLETA and isinstance(payload.get("executador"), str):
        name = payload["executador"]
    if name is not None and not isinstance(name, str):
        raise WireError("invalid_field", f"payload.{key} is not a string")
    return name


def _echoes(payload: dict[str, Any]) -> dict[str, Any]:
    """What a payload echoes of its order. A result may have a `ticket_id`, a `tentativa` or a `token` of its own, which
    are not ours and stay where they are."""
    found: dict[str, Any] = {}
    ticket, attempt = payload.get("ticket_id"), payload.get("tentativa")
    if isinstance(ticket, str) and parse_ticket_id(ticket) is not None:
        found["ticket_id"] = ticket
    if attempt is not None:
        with suppress(WireError):
            found["tentativa"] = check_attempt("payload.tentativa", attempt)
    if looks_like_token(payload.get("token")):
        found["token"] = payload["token"]
    return found


def token_of(message: Mensagem, headers: Mapping[str, str] = NO_HEADERS) -> str | None:
    """The token that an answer hands back: in its envelope, in its payload, or in a header of the message."""
    if message.token is not None:
        return message.token
    inside = message.payload.get("token")
    return inside if isinstance(inside, str) and looks_like_token(inside) else headers.get(TOKEN_HEADER)


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
