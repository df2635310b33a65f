"""Schedules: requests that are started at instants of a calendar."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import bodies, body, paths, problems, schedule_documents
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.named_documents import NAME_MAX_CHARS, REMOVED, document_for, kept, name_in_path
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.schedules import run_name
from oraculo.errors import DuplicateCorrelationError
from oraculo.runtime.requests import Accepted
from oraculo.runtime.schedules.book import BackfillItem, Schedule, ScheduleBook
from oraculo.service import Oraculo
from oraculo.wire import schedules
from oraculo.wire.schedules import Agenda

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/schedules", tags=["schedules"], responses=problems.COMMON_RESPONSES
)

UPCOMING_DEFAULT, UPCOMING_MAX = 10, 1000
Nome = Annotated[str, name_in_path("relatorio_diario")]
_STANDS = answer(schedule_documents.ScheduleDocument, "As it stands")


class ScheduleQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(100, ge=1, le=500)
    cursor: Annotated[str, Field(max_length=NAME_MAX_CHARS)] = Field("", description="`next` of the page before")


class UpcomingQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int = Field(UPCOMING_DEFAULT, ge=1, le=UPCOMING_MAX)


def shown(schedule: Schedule, upcoming: list[datetime]) -> dict[str, Any]:
    """A schedule as the API shows it."""
    record = schedule.record
    paused, last = record.paused, record.state.last
    return {
        "nome": schedule.name,
        **schedules.written(schedule.agenda),
        "pausada": None if paused is None else {"em": paused.at, "por": paused.by, "motivo": paused.reason},
        "ator": record.actor,
        "alterada_em": record.changed_at,
        "ultima": None if last is None else run_name(schedule.name, last),
        "em_fila": len(record.state.waiting),
        "instantes": record.counts,
        "erro": record.error,
        "proximos": upcoming,
    }


def _document(book: ScheduleBook, schedule: Schedule) -> dict[str, Any]:
    return shown(schedule, book.upcoming(schedule, UPCOMING_DEFAULT))


@router.get(
    "",
    summary="List schedules",
    description="By name, in pages.",
    response_class=Response,
    responses={200: answer(schedule_documents.SchedulePage, "A page"), **problems.documented(422)},
)
@needs(Scope.RUN_READ)
async def find(oraculo: Running, query: Annotated[ScheduleQuery, Query()]) -> Response:
    found = await oraculo.schedules.page(query.cursor, query.limit + 1)
    listed = found[: query.limit]
    documents = [shown(one, oraculo.schedules.upcoming(one, 1)) for one in listed]
    return answered({"agendas": documents, "next": listed[-1].name if len(found) > query.limit else None})


@router.put(
    "/{nome:segment}",
    summary="Keep a schedule",
    description="Instants that have passed do not fire. A change that leaves the calendar as it was keeps what is due.",
    response_class=Response,
    responses=kept(_STANDS),
    openapi_extra=body.documented(Agenda),
)
@needs(Scope.SCHEDULE_WRITE)
async def put(request: Request, oraculo: Running, nome: Nome) -> Response:
    found, new = await oraculo.schedules.put(nome, await document_for(request, nome), actor_of(request))
    return answered(_document(oraculo.schedules, found), 201 if new else 200)


@router.get(
    "/{nome:segment}",
    summary="Look at a schedule",
    description="Its document, who paused it and why, its latest run and its next ten instants.",
    response_class=Response,
    responses={200: _STANDS, **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, nome: Nome) -> Response:
    return answered(_document(oraculo.schedules, await oraculo.schedules.get(nome)))


@router.delete(
    "/{nome:segment}",
    status_code=204,
    summary="Remove a schedule",
    description="Runs that it has started go on.",
    response_class=Response,
    responses=REMOVED,
)
@needs(Scope.SCHEDULE_WRITE)
async def remove(request: Request, oraculo: Running, nome: Nome) -> Response:
    await oraculo.schedules.remove(nome, actor_of(request))
    return Response(status_code=204)


_CHANGED: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: _STANDS, **problems.documented(404, 408, 413, 415, 422)},
    "openapi_extra": body.documented(bodies.CancelRequest, required=False),
}


@router.post(
    "/{nome:segment}/pause",
    summary="Pause a schedule",
    description="No instant fires until it is resumed. Runs that it has started go on.",
    **_CHANGED,
)
@needs(Scope.SCHEDULE_WRITE)
async def pause(request: Request, oraculo: Running, nome: Nome) -> Response:
    asked = await body.optional(request, bodies.CancelRequest)
    return answered(_document(oraculo.schedules, await oraculo.schedules.pause(nome, asked.motivo, actor_of(request))))


@router.post(
    "/{nome:segment}/resume",
    summary="Resume a schedule",
    description="It goes on with the next instant; those that passed meanwhile are left to `backfill`.",
    **_CHANGED,
)
@needs(Scope.SCHEDULE_WRITE)
async def resume(request: Request, oraculo: Running, nome: Nome) -> Response:
    asked = await body.optional(request, bodies.CancelRequest)
    return answered(_document(oraculo.schedules, await oraculo.schedules.resume(nome, asked.motivo, actor_of(request))))


@router.post(
    "/{nome:segment}/trigger",
    status_code=202,
    summary="Start a run now",
    description="Whatever the calendar says, paused or not, beside other runs.",
    response_class=Response,
    responses={
        202: answer(schedule_documents.Triggered, "Accepted", headers={"Location": "where the orchestration is"}),
        **problems.documented(404, 408, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.CancelRequest, required=False),
)
@needs(Scope.SCHEDULE_WRITE)
async def trigger(request: Request, oraculo: Running, nome: Nome) -> Response:
    asked = await body.optional(request, bodies.CancelRequest)
    name = (await oraculo.schedules.trigger(nome, asked.motivo, actor_of(request))).correlation_id
    return answered({"correlation_id": name}, 202, {"Location": paths.orchestration(name)})


@router.post(
    "/{nome:segment}/backfill",
    status_code=202,
    summary="Start the runs of a time that has passed",
    description="Of up to 1000 instants; those whose run exists are left as they are. Overlap does not count.",
    response_class=Response,
    responses={
        202: answer(schedule_documents.Backfilled, "What became of each instant, in order"),
        **problems.documented(404, 408, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.BackfillRequest),
)
@needs(Scope.SCHEDULE_WRITE)
async def backfill(request: Request, oraculo: Running, nome: Nome) -> Response:
    asked = await body.required(request, bodies.BackfillRequest)
    items = await oraculo.schedules.backfill(nome, asked.de, asked.ate, actor_of(request))
    told = [_told(nome, item, request.scope["path"]) for item in items]
    new = sum(1 for one in items if isinstance(one.answer, Accepted) and one.answer.new)
    return answered({"iniciadas": new, "itens": told}, 202)


def _told(name: str, item: BackfillItem, instance: str) -> dict[str, Any]:
    run = run_name(name, item.instant)
    if isinstance(item.answer, Accepted | DuplicateCorrelationError):
        new = isinstance(item.answer, Accepted) and item.answer.new
        if isinstance(item.answer, Accepted):
            run = item.answer.correlation_id  # another one's, when it was merged
        return {"status": 202 if new else 200, "instante": item.instant, "correlation_id": run}
    return {**problems.document(problems.problem_of(item.answer), instance), "instante": item.instant}


@router.get(
    "/{nome:segment}/upcoming",
    summary="The next instants of a schedule",
    description="Nominal instants from now on, paused or not.",
    response_class=Response,
    responses={200: answer(schedule_documents.Upcoming, "Instants"), **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def upcoming(oraculo: Running, nome: Nome, query: Annotated[UpcomingQuery, Query()]) -> Response:
    return answered({"instantes": await _instants(oraculo, nome, query.n)})


async def _instants(oraculo: Oraculo, nome: str, count: int) -> list[datetime]:
    return oraculo.schedules.upcoming(await oraculo.schedules.get(nome), count)
