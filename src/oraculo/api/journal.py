"""What happened in an orchestration and how it ended: result, events, and the events as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import documents, paths, problems, run_documents
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.languages import ReaderLanguage
from oraculo.api.openapi import answer
from oraculo.api.orchestrations import submitted
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, answered, raw, waits_of
from oraculo.api.waiting import EventStream
from oraculo.core.access import Scope
from oraculo.service import Oraculo
from oraculo.wire import strict_json, views

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)

MOST_EVENTS = 2**53
RETRY_MS = 1000
HEARTBEAT_S = 15.0


_TEXT = {"type": "string"}
_EVENT = {"type": "object", "properties": {"id": _TEXT, "event": _TEXT, "data": {**_TEXT, "description": "JSON"}}}


class ResultQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    wait: float = Field(0, ge=0, le=300, allow_inf_nan=False, description="seconds to wait for the end")


@router.get(
    "/{correlation_id:segment}/result",
    summary="Get the result",
    description="200 with the aggregate when it is final; 202 when it is still running after `wait` seconds.",
    response_class=Response,
    responses={
        200: answer(run_documents.Aggregate, "It ended; the aggregate"),
        202: answer(documents.Running, "Still running", headers={"Retry-After": "seconds"}),
        **problems.documented(404, 422),
    },
)
@needs(Scope.RUN_READ)
async def result(
    request: Request,
    oraculo: Running,
    correlation_id: paths.CorrelationId,
    query: Annotated[ResultQuery, Query()],
    language: ReaderLanguage,
) -> Response:
    waits = waits_of(request)
    run = await oraculo.run_of(correlation_id)
    if query.wait > 0 and not waits.stopping:
        body = await waits.either(request.receive, oraculo.result_json(run, wait=query.wait))
    else:
        body = await oraculo.result_json(run)
    if body is not None:
        return raw(body)
    state = await oraculo.state(correlation_id)
    if state.status.final:  # it ended just now
        body = await oraculo.result_json(run)
        if body is not None:
            return raw(body)
    document = {
        **submitted(correlation_id, state.status),
        "espera": views.waiting_for(state, language, oraculo.hold_of),
    }
    return answered(document, 202, {"Retry-After": "1"})


class EventsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    after: int = Field(0, ge=0, le=MOST_EVENTS, description="number of the last event already seen")
    limit: int = Field(1000, ge=1, le=10_000)


@router.get(
    "/{correlation_id:segment}/events",
    summary="Read the journal",
    description="Everything that happened, oldest first, numbered from 1.",
    response_class=Response,
    responses={200: answer(documents.EventPage, "Events"), **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def events(
    oraculo: Running,
    correlation_id: paths.CorrelationId,
    query: Annotated[EventsQuery, Query()],
    language: ReaderLanguage,
) -> Response:
    found = await oraculo.events(correlation_id, query.after, query.limit, language)
    following = found[-1]["seq"] if len(found) == query.limit else None
    return answered({"correlation_id": correlation_id, "events": found, "next": following})


class StreamQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    after: int = Field(0, ge=0, le=MOST_EVENTS, description="where to begin when there is no Last-Event-ID")


@router.get(
    "/{correlation_id:segment}/stream",
    summary="Follow the journal",
    description="Server-Sent Events: `id` is the event's number, `event` its name, `data` the event as JSON. Resumes "
    "after `Last-Event-ID` without a gap. When the orchestration has ended the last event is `fim`, with the result; a "
    "stream that stops without it was interrupted, and is to be resumed.",
    response_class=Response,
    responses={
        200: {"description": "Events; the schema is of each one", "content": {"text/event-stream": {"schema": _EVENT}}},
        **problems.documented(404, 422),
    },
    openapi_extra={
        "parameters": [
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": "number of the last event already seen; wins over `after`",
                "schema": {"type": "string", "pattern": "^[0-9]{1,16}$"},
            }
        ]
    },
)
@needs(Scope.RUN_READ)
async def stream(
    request: Request,
    oraculo: Running,
    correlation_id: paths.CorrelationId,
    query: Annotated[StreamQuery, Query()],
    language: ReaderLanguage,
) -> Response:
    waits = waits_of(request)
    if waits.stopping:
        raise ProblemError("not_ready", "the server is stopping")
    last = request.headers.get("last-event-id")
    after = query.after
    if last:
        if not (last.isascii() and last.isdigit() and len(last) <= 16):
            raise ProblemError("invalid_last_event_id", f"Last-Event-ID {last[:40]!r}; allowed: the number of an event")
        after = int(last)
    await oraculo.run_of(correlation_id)
    events = oraculo.stream(correlation_id, after, request.app.state.heartbeat_seconds, language)
    closed = oraculo.requests.quotas.open_stream(actor_of(request))
    return EventStream(_frames(oraculo, correlation_id, events), waits, closed)


async def _frames(
    oraculo: Oraculo, correlation_id: str, following: AsyncGenerator[dict[str, Any] | None]
) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    async with aclosing(following) as events:
        async for event in events:
            if event is None:
                yield b": nada ainda\n\n"
            else:
                yield frame(event["evento"], strict_json.dumps(event), event["seq"])
    result = await oraculo.result_json(await oraculo.run_of(correlation_id))
    if result is not None:
        yield frame("fim", result)


def frame(event: str, data: bytes, number: int | None = None) -> bytes:
    """One event. JSON text that we wrote has no line break in it."""
    identity = b"" if number is None else b"id: %d\n" % number
    return b"%sevent: %s\ndata: %s\n\n" % (identity, event.encode(), data)
