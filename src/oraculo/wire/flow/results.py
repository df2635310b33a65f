"""An ExecutionResult as it comes → the command that records it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from oraculo.core.commands import RecordResult
from oraculo.core.vocabulary import Kind
from oraculo.wire import requests, strict_json, trace_context
from oraculo.wire.flow.plans import Id, Instant, Model, Whole
from oraculo.wire.flow.texts import text_of
from oraculo.wire.payloads import NO_HEADERS

INVALID = "invalid_result"
MOST = 2**31  # attempts
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
        """Whoever says that it completed, and that it did not succeed, did not succeed."""
        return self.status == "COMPLETED" and self.result.success is not False

    @property
    def definitivo(self) -> bool:
        said = self.result.metadata
        return any(text_of(said.get(name)).strip().lower() in _TRUE for name in ("definitivo", "non_retryable"))

    @property
    def attempt(self) -> int | None:
        """What a worker echoes of its ticket's metadata, if it does."""
        text = text_of(self.result.metadata.get("attempt"))
        return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:12]) <= MOST else None


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
    command = RecordResult(
        ok=found.ok,
        dados=strict_json.compact(_kept(found)),
        erros=[] if found.ok else [_error(found)],
        definitivo=not found.ok and found.definitivo,
        ticket=found.ticket_id,
        attempt=found.attempt,
        kind=Kind.EXECUCAO,
        digest=zlib.crc32(raw) or 1,
        traceparent=trace_context.of_message(None, headers),
    )
    return command, found.agent_id


def _kept(found: Document) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "success": found.ok,
        "output": found.result.output,
        "metadata": found.result.metadata,
        "logs": found.result.logs,
    }
    if found.agent_id:
        kept["agent_id"] = found.agent_id
    if found.actual_duration_ms is not None:
        kept["actual_duration_ms"] = found.actual_duration_ms
    return kept


def _error(found: Document) -> dict[str, object]:
    kind = text_of(found.result.metadata.get("error_type")) or "erro"
    text = found.error_message or "o worker respondeu FAILED sem dizer por quê"
    return {"codigo": kind[:100], "mensagem": text, "definitivo": found.definitivo}
