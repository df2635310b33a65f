"""Task types: names that stand for a request's collectors and executors."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import body, documents, paths, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import invalid
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.errors import UnknownIdError
from oraculo.wire import names, requests
from oraculo.wire.requests import Requisicao

router = APIRouter(
    route_class=GuardedRoute, prefix=f"{paths.API}/task-types", tags=["task types"], responses=problems.COMMON_RESPONSES
)

Tipo = Annotated[
    str, Path(json_schema_extra={"pattern": names.NAME_PATTERN, "maxLength": 100}, examples=["relatorio_semanal"])
]
_STORED = {
    "description": "The task type, as a request body",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Requisicao"}}},
}
_EXAMPLE = {
    "coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}}, {"fonte": "blog"}],
    "execucoes": [{"executador": "relatorio"}],
    "timeout_s": 60,
}


def _shown(template: Requisicao) -> dict[str, Any]:
    return requests.written(template)


@router.get(
    "",
    summary="List task types",
    description="Those kept here and those of the file `ORACULO_TASK_TYPES`, by name.",
    response_class=Response,
    responses={200: answer(documents.TaskTypes, "Every task type")},
)
@needs(Scope.RUN_READ)
async def find(oraculo: Running) -> Response:
    known = oraculo.requests.task_types(oraculo.tenant)
    return answered({"task_types": {tipo: _shown(known[tipo]) for tipo in sorted(known)}})


@router.put(
    "/{tipo:segment}",
    summary="Keep a task type",
    description="The body is a request without `correlation_id` and `tipo`; it is validated like one.",
    response_class=Response,
    responses={
        200: {**_STORED, "description": "Replaced"},
        201: {**_STORED, "description": "Added"},
        **problems.documented(408, 413, 415, 422),
    },
    openapi_extra=body.documented(Requisicao, examples={"weekly report": _EXAMPLE}),
)
@needs(Scope.TYPE_WRITE)
async def put(request: Request, oraculo: Running, tipo: Tipo) -> Response:
    if re.fullmatch(names.NAME_PATTERN, tipo) is None or tipo.endswith("\n"):
        raise invalid("path.tipo", f"{tipo[:40]!r} does not match {names.NAME_PATTERN}")
    value, _ = await body.value(request)
    known = tipo in oraculo.requests.task_types(oraculo.tenant)
    template = await oraculo.requests.put_task_type(tipo, value, oraculo.tenant)
    return answered(_shown(template), 200 if known else 201)


@router.get(
    "/{tipo:segment}",
    summary="Look at a task type",
    description="What the name stands for, as a request body.",
    response_class=Response,
    responses={200: _STORED, **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, tipo: Tipo) -> Response:
    template = oraculo.requests.task_types(oraculo.tenant).get(tipo)
    if template is None:
        raise UnknownIdError("task type", tipo)
    return answered(_shown(template))


@router.delete(
    "/{tipo:segment}",
    status_code=204,
    summary="Forget a task type",
    description="Orchestrations that were started from it go on.",
    response_class=Response,
    responses={204: {"description": "Forgotten"}, **problems.documented(404, 422)},
)
@needs(Scope.TYPE_WRITE)
async def remove(oraculo: Running, tipo: Tipo) -> Response:
    await oraculo.requests.remove_task_type(tipo, oraculo.tenant)
    return Response(status_code=204)
