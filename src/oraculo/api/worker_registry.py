"""Workers register, say that they are alive and go; operators find and drain them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, RootModel

from oraculo.api import bodies, body, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, answered
from oraculo.api.worker_documents import Beat, Beats, Registered, WorkerInfo, Workers
from oraculo.api.worker_views import registered_worker, who_works
from oraculo.core.access import Actor, Scope
from oraculo.core.tenants import in_tenant
from oraculo.errors import UnknownIdError
from oraculo.runtime.turns import Turns
from oraculo.runtime.workers import forbidden_queue
from oraculo.service import Oraculo
from oraculo.wire.worker_messages import WORKER_NAME_MAX_CHARS, Heartbeat, HostHeartbeat, Registration

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["workers"], responses=problems.COMMON_RESPONSES)

Name = Annotated[
    str, Path(json_schema_extra={"minLength": 1, "maxLength": WORKER_NAME_MAX_CHARS}, examples=["youtube-1"])
]
BEATS_MAX = 1000
Situation = Literal["visto", "ativo", "degradado", "doente", "drenando", "perdido"]


class WorkersQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    capacidade: list[str] = Field(default_factory=list, max_length=20, description="only those that have all of these")
    fila: str | None = Field(None, max_length=200, description="only those that take from this queue")
    situacao: Situation | None = None
    limit: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="the best so many of those that registered, by `pontuacao`; else all, as they come",
    )


class HostHeartbeats(RootModel[Annotated[list[HostHeartbeat], Field(max_length=BEATS_MAX)]]):
    """The heartbeats of the workers of a host."""


@router.get(
    "/workers",
    summary="Who is working",
    description="Workers that registered, workers over HTTP and over the broker that were seen lately, and workers of "
    "this process: their queues, since when and until when they are known, what they do now, their last error; and how "
    "full the queues are, where the broker can say. Those that did not register are known by what this process gave "
    "them and the answers that it took; one over a broker that gives no `worker` in its envelope is named by its "
    "queue.",
    response_class=Response,
    responses={200: answer(Workers, "Workers and queues"), **problems.documented(422)},
)
@needs(Scope.SYSTEM_READ)
async def workers(oraculo: Running, query: Annotated[WorkersQuery, Query()]) -> Response:
    found = await who_works(oraculo)
    return answered({**found, "workers": chosen(found["workers"], query)})


def chosen(found: list[dict[str, Any]], query: WorkersQuery) -> list[dict[str, Any]]:
    """Those that the query asks for, the best first when it asks for so many."""
    some = [
        one
        for one in found
        if set(query.capacidade) <= set(one["capacidades"])
        and (query.fila is None or query.fila in one["filas"])
        and (query.situacao is None or one["situacao"] == query.situacao)
    ]
    if query.limit is None:
        return some
    ranked = [one for one in some if one["pontuacao"] is not None]
    return sorted(ranked, key=lambda one: (-one["pontuacao"], one["nome"]))[: query.limit]


@router.get(
    "/workers/{name:segment}",
    summary="One worker that registered",
    description="What it said of itself, when it was heard last, and the tickets that it has now.",
    response_class=Response,
    responses={200: answer(WorkerInfo, "What is known of it"), **problems.documented(404)},
)
@needs(Scope.SYSTEM_READ)
async def worker(oraculo: Running, name: Name) -> Response:
    return answered(await _shown(oraculo, name))


async def _shown(oraculo: Oraculo, name: str) -> dict[str, Any]:
    key = in_tenant(oraculo.tenant, name)
    found = await oraculo.registry.one(key)
    if found is None:
        raise UnknownIdError("worker", name)
    return registered_worker(found, oraculo.leases.held_by(key), oraculo.leases.workers.get(key), oraculo.trails)


@router.post(
    "/workers",
    status_code=201,
    summary="Register a worker",
    description="Idempotent: the same `worker` again takes its own place, with a new lease. It is lost when nothing is "
    "heard of it for `timeout_s`, and then its tickets go elsewhere. Heartbeats, and asking for or keeping messages "
    "under the same name, are signs of life.",
    response_class=Response,
    responses={201: answer(Registered, "Registered"), **problems.documented(408, 413, 415, 422)},
    openapi_extra=body.documented(Registration),
)
@needs(Scope.LEASE_TAKE)
async def register(request: Request, oraculo: Running) -> Response:
    said, actor = await body.required(request, Registration), actor_of(request)
    refused = forbidden_queue(said, actor)
    if refused is not None:
        raise ProblemError("forbidden", f"this key may not work on {refused}", scope=Scope.LEASE_TAKE)
    stored, told = await oraculo.registry.register(oraculo.tenant, said, actor, "http")
    return answered(
        {
            "worker": said.worker,
            "registrado_em": stored.registered_at,
            "expira_em": stored.lease_until,
            "drenar": told.draining,
            "proximo_s": told.next_s,
        },
        201,
    )


@router.put(
    "/workers/{name:segment}/heartbeat",
    summary="Say that a worker is alive",
    description="And what it does: `executando` are the tickets that go elsewhere when it is lost. 404: it is not "
    "registered, or was lost; register again.",
    response_class=Response,
    responses={200: answer(Beat, "What it has to do"), **problems.documented(404, 408, 413, 415, 422)},
    openapi_extra=body.documented(Heartbeat, required=False),
)
@needs(Scope.LEASE_TAKE)
async def heartbeat(request: Request, oraculo: Running, name: Name) -> Response:
    return answered(await _heard(oraculo, name, await body.optional(request, Heartbeat), actor_of(request)))


async def _heard(oraculo: Oraculo, name: str, said: Heartbeat, actor: Actor) -> dict[str, Any]:
    told = await oraculo.registry.beat(in_tenant(oraculo.tenant, name), said, actor)
    stop = [
        {"ticket_id": one.ticket_id, "tentativa": one.attempt, "por": one.by, "prazo_s": one.grace_s}
        for one in told.stop
    ]
    return {"worker": name, "drenar": told.draining, "proximo_s": told.next_s, "parar": stop}


@router.post(
    "/workers/heartbeats",
    status_code=207,
    summary="Say that the workers of a host are alive",
    description="Up to 1000 heartbeats in one request, each with its `worker`: what they cost is mostly the request. "
    "Each is answered on its own, in order; one that is not registered gets a problem and registers again.",
    response_class=Response,
    responses={207: answer(Beats, "What each has to do, in order"), **problems.documented(408, 413, 415, 422)},
    openapi_extra=body.documented("HostHeartbeats"),
)
@needs(Scope.LEASE_TAKE)
async def heartbeats(request: Request, oraculo: Running) -> Response:
    actor, turns, told = actor_of(request), Turns(), list[dict[str, Any]]()
    for said in (await body.required(request, HostHeartbeats)).root:
        await turns.pause()
        try:
            told.append(await _heard(oraculo, said.worker, said, actor))
        except UnknownIdError as error:
            told.append({"worker": said.worker, **problems.document(problems.problem_of(error), request.scope["path"])})
    return answered({"itens": told}, 207)


@router.delete(
    "/workers/{name:segment}",
    status_code=204,
    summary="Say goodbye for a worker",
    description="It is forgotten at once; tickets that it still has go elsewhere.",
    response_class=Response,
    responses={204: {"description": "It is gone"}, **problems.documented(404)},
)
@needs(Scope.LEASE_TAKE)
async def leave(request: Request, oraculo: Running, name: Name) -> Response:
    key = in_tenant(oraculo.tenant, name)
    if not await oraculo.registry.may_end(key, actor_of(request)) or not await oraculo.registry.leave(key):
        raise UnknownIdError("worker", name)
    return Response(status_code=204)


_DRAINED: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: answer(WorkerInfo, "How it stands now"), **problems.documented(404, 408, 413, 415, 422)},
    "openapi_extra": body.documented(bodies.PauseRequest, required=False),
}


@router.post(
    "/workers/{name:segment}/drain",
    summary="Give a worker nothing more",
    description="It finishes what it has. It is told with its next heartbeat, or in its own queue; over HTTP it gets "
    "nothing from now on. It stays so until it is resumed, also when it registers again.",
    **_DRAINED,
)
@needs(Scope.QUEUE_PAUSE)
async def drain(request: Request, oraculo: Running, name: Name) -> Response:
    asked = await body.optional(request, bodies.PauseRequest)
    if not await oraculo.registry.drain(in_tenant(oraculo.tenant, name), asked.motivo, actor_of(request)):
        raise UnknownIdError("worker", name)
    return answered(await _shown(oraculo, name))


@router.post(
    "/workers/{name:segment}/resume",
    summary="Let a worker work again",
    description="It gets orders again after a drain.",
    **_DRAINED,
)
@needs(Scope.QUEUE_PAUSE)
async def resume(request: Request, oraculo: Running, name: Name) -> Response:
    asked = await body.optional(request, bodies.PauseRequest)
    if not await oraculo.registry.resume(in_tenant(oraculo.tenant, name), asked.motivo, actor_of(request)):
        raise UnknownIdError("worker", name)
    return answered(await _shown(oraculo, name))
