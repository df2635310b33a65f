"""The parameters that workers of a queue take, as JSON Schema: declared by workers, held against requests."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import body, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.schema_documents import DeclaredSchema, ParameterSchema
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.tenants import local_name, queue_in
from oraculo.errors import UnknownIdError
from oraculo.service import Oraculo
from oraculo.wire import names

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/queues", tags=["workers"], responses=problems.COMMON_RESPONSES
)

Queue = Annotated[
    str, Path(json_schema_extra={"pattern": names.QUEUE_PATTERN, "maxLength": 200}, examples=["executador_relatorio"])
]


_SHOWN = answer(DeclaredSchema, "What the parameters of orders have to be")


@router.put(
    "/{queue:segment}/schema",
    summary="Declare the parameters of a queue",
    description="Workers with typed functions do this when they start. Requests whose parameters cannot fit are "
    "refused from then on; values that are expressions are checked by the worker. Durable when the answer arrives.",
    response_class=Response,
    responses={200: _SHOWN, **problems.documented(408, 413, 415, 422)},
    openapi_extra=body.documented(ParameterSchema),
)
@needs(Scope.LEASE_TAKE)
async def declare(request: Request, oraculo: Running, queue: Queue) -> Response:
    meant = _meant(oraculo, queue)
    if not actor_of(request).may_use(meant):
        raise ProblemError("forbidden", f"this key may not declare for {queue}", scope=Scope.LEASE_TAKE)
    asked = await body.required(request, ParameterSchema)
    await oraculo.requests.schemas.put(meant, asked.parametros)
    return _shown(oraculo, meant)


@router.get(
    "/{queue:segment}/schema",
    summary="Look at the parameters of a queue",
    description="As its workers declared them.",
    response_class=Response,
    responses={200: _SHOWN, **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, queue: Queue) -> Response:
    return _shown(oraculo, _meant(oraculo, queue))


@router.delete(
    "/{queue:segment}/schema",
    status_code=204,
    summary="Forget the parameters of a queue",
    description="Requests are not held against them any more, until a worker declares them again.",
    response_class=Response,
    responses={204: {"description": "Forgotten"}, **problems.documented(404, 422)},
)
@needs(Scope.TYPE_WRITE)
async def forget(oraculo: Running, queue: Queue) -> Response:
    if not await oraculo.requests.schemas.remove(_meant(oraculo, queue)):
        raise UnknownIdError("schema of queue", queue)
    return Response(status_code=204)


def _meant(oraculo: Oraculo, queue: str) -> str:
    if not names.is_queue_name(queue):
        raise invalid("path.queue", f"{queue[:40]!r} does not match {names.QUEUE_PATTERN}")
    meant = queue_in(oraculo.tenant, queue)
    if meant is None:
        raise UnknownIdError("queue", queue)
    return meant


def _shown(oraculo: Oraculo, queue: str) -> Response:
    schema = oraculo.requests.schemas.of(queue)
    if schema is None:
        raise UnknownIdError("schema of queue", local_name(queue))
    return answered({"fila": local_name(queue), "parametros": schema})
