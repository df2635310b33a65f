"""Many requests in one call: a JSON array or JSON lines, each answered on its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.orchestrations import IDEMPOTENCY_PARAMETER, idempotency_key, traceparent_of
from oraculo.api.problems import invalid
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.errors import OraculoError, WireError
from oraculo.runtime.requests import Accepted, RequestIntake
from oraculo.runtime.turns import Turns
from oraculo.wire import strict_json
from oraculo.wire.json_items import split_items
from oraculo.wire.requests import Requisicao

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)

BATCH_MAX_REQUESTS = 1000
BATCH_MAX_BYTES = 16 * 1024 * 1024
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")

_CONTENT = {
    "application/json": {"schema": {"$ref": "#/components/schemas/Requisicoes"}},
    NDJSON[0]: {"schema": {"$ref": "#/components/schemas/RequestLines"}},
}


@router.post(
    "/batch",
    status_code=207,
    summary="Start many orchestrations",
    description="A JSON array, or one request on each line (`application/x-ndjson`): up to 1000 requests of 1 MiB "
    "each, 16 MiB together. Each is accepted or refused on its own, in few transactions; what was accepted is durable "
    "when the answer arrives. A repetition with the same `Idempotency-Key` answers the same orchestrations, "
    "place by place.",
    response_class=Response,
    responses={
        207: answer(documents.Batch, "What became of each, in order"),
        **problems.documented(408, 413, 415, 422),
    },
    openapi_extra={"requestBody": {"required": True, "content": _CONTENT}, "parameters": [IDEMPOTENCY_PARAMETER]},
)
@needs(Scope.RUN_SUBMIT)
async def batch(request: Request, oraculo: Running) -> Response:
    key = idempotency_key(request)
    kind, raw = await body.of_types(request, ("application/json", *NDJSON), BATCH_MAX_BYTES)
    items = _lines(raw) if kind in NDJSON else _elements(raw)
    wanted = [_read(oraculo.requests, item) async for item in items]
    traceparent = traceparent_of(request)
    found = await oraculo.batches.accept_each(wanted, key, traceparent, actor=actor_of(request))
    turns, told = Turns(), list[dict[str, Any]]()
    for one in found:
        told.append(_told(one, request.scope["path"]))
        await turns.pause()
    return answered({"itens": told}, 207)


async def _elements(raw: bytes) -> AsyncIterator[bytes]:
    """The elements of a JSON array. What is no array is refused whole."""
    turns, count = Turns(), 0
    for item in split_items(raw):
        await turns.pause()
        if item is not None:
            count = _counted(count)
            yield item


async def _lines(raw: bytes) -> AsyncIterator[bytes]:
    turns, count, start = Turns(), 0, 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        line = raw[start:end].strip()
        start = end + 1
        await turns.pause()
        if line:
            count = _counted(count)
            yield line


def _counted(count: int) -> int:
    if count == BATCH_MAX_REQUESTS:
        raise invalid("(corpo)", f"at most {BATCH_MAX_REQUESTS} requests are allowed", "invalid_request")
    return count + 1


def _read(intake: RequestIntake, raw: bytes) -> Requisicao | OraculoError:
    try:
        return intake.read(strict_json.loads(raw))
    except WireError as error:
        return error


def _told(found: Accepted | OraculoError, instance: str) -> dict[str, Any]:
    if isinstance(found, Accepted):
        return {"status": 202, "correlation_id": found.correlation_id, **({"juntada": True} if found.merged else {})}
    return problems.document(problems.problem_of(found), instance)
