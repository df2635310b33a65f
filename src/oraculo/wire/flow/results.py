"""An ExecutionResult as it comes → the command that records it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from oraculo.core.commands import RecordResult
from oraculo.core.digests import digest_of
from oraculo.core.vocabulary import Kind
from oraculo.wire import requests, strict_json, trace_context
from oraculo.wire.flow.plans import Id, Instant, Model, Whole
from oraculo.wire.flow.texts import text_of
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.ticket_tokens import HEADER, looks_like_token

INVALID = "invalid_result"
MAX_ATTEMPT = 2**31
_TRUE = ("true", "1", "yes")


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


class Outcome(Model):
    success: Annotated[bool, Field(strict=True)] | None = None
    output: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    logs: list[Any] = Field(default_factory=list)


class Document(Model):
    ticket_id: Id
    status: Annotated[Literal["COMPLETED", "FAILED", "RUNNING"], BeforeValidator(_upper)]
    result: Outcome = Outcome()
    error_message: Annotated[str, Field(max_length=100_000)] | None = None
    actual_duration_ms: Annotated[Whole, Field(ge=0)] | None = None
    agent_id: Annotated[str, Field(max_length=128)] = ""
    timestamp: Instant | None = None

    @property
    def ok(self) -> bool:
        """False also for a result that says COMPLETED and `success: false`."""
        return self.status == "COMPLETED" and self.result.success is not False

    @property
    def definitivo(self) -> bool:
        said = self.result.metadata
        return any(text_of(said.get(name)).strip().lower() in _TRUE for name in ("definitivo", "non_retryable"))

    @property
    def attempt(self) -> int | None:
        """What a worker echoes of its ticket's metadata, if it does."""
        text = text_of(self.result.metadata.get("attempt"))
        return (
            int(text) if text.isascii() and text.isdigit() and len(text) < 12 and 0 < int(text) <= MAX_ATTEMPT else None
        )


def token_of(value: Mapping[str, Any], headers: Mapping[str, str] = NO_HEADERS) -> str | None:
    """The token that a result hands back: in a field of its own, in the metadata, as tickets have it, or in a header
    of the message."""
    result = value.get("result")
    metadata = result.get("metadata") if isinstance(result, Mapping) else None
    inside = metadata.get("token") if isinstance(metadata, Mapping) else None
    for said in (value.get("token"), inside):
        if isinstance(said, str) and said:
            return said
    return headers.get(HEADER)


def answer(
    value: Mapping[str, Any], raw: bytes, headers: Mapping[str, str] = NO_HEADERS
) -> tuple[RecordResult | None, str]:
    """The command, and who worked on it. No command when it says that work goes on. WireError `invalid_result` with the
    place of every fault."""
    try:
        found = Document.model_validate({key: item for key, item in value.items() if item is not None})
    except ValidationError as error:
        raise requests.invalid(error, INVALID) from None
    if found.status == "RUNNING":
        return None, found.agent_id
    dados, erros = strict_json.compact(_kept(found)), [] if found.ok else [_error(found)]
    command = RecordResult(
        ok=found.ok,
        dados=dados,
        erros=erros,
        definitivo=not found.ok and found.definitivo,
        ticket=found.ticket_id,
        attempt=found.attempt,
        kind=Kind.EXECUCAO,
        digest=digest_of(raw, found.ok, dados, erros),
        traceparent=trace_context.of_message(None, headers),
        work_ms=found.actual_duration_ms,
    )
    return command, found.agent_id


def _kept(found: Document) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "success": found.ok,
        "output": found.result.output,
        "metadata": {name: said for name, said in found.result.metadata.items() if not looks_like_token(said)},
        "logs": found.result.logs,
    }
    if found.agent_id:
        kept["agent_id"] = found.agent_id
    if found.actual_duration_ms is not None:
        kept["actual_duration_ms"] = found.actual_duration_ms
    return kept


def _error(found: Document) -> dict[str, object]:
    kind = text_of(found.result.metadata.get("error_type")) or "erro"
    error: dict[str, object] = {"codigo": kind[:100], "mensagem": found.error_message, "definitivo": found.definitivo}
    if not found.error_message:
        del error["mensagem"]  # what is shown in its place is core/sentences.py
    return error
