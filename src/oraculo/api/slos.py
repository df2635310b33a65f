"""Objectives of service levels, the alerts that were told, and what is frozen."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import body, paging, paths, problems, slo_documents
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.named_documents import REMOVED, document_for, kept, name_in_path
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.core.tenants import in_tenant
from oraculo.ports.sla import ToldAlert
from oraculo.runtime.sla.book import Objective
from oraculo.service import Oraculo
from oraculo.wire import sla, strict_json

_COMMON: dict[str, Any] = {"route_class": GuardedRoute, "tags": ["sla"], "responses": problems.COMMON_RESPONSES}
router = APIRouter(prefix=f"{paths.API}/slos", **_COMMON)
told_router = APIRouter(prefix=f"{paths.API}/sla", **_COMMON)

Nome = Annotated[str, name_in_path("relatorios")]
_STANDS = answer(slo_documents.SloDocument, "As it stands")


class AlertQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, description="`next` of the page before")


def shown(oraculo: Oraculo, one: Objective) -> dict[str, Any]:
    """An objective as the API shows it."""
    slo = one.document.slo(in_tenant(oraculo.tenant, one.name))
    return {
        "nome": one.name,
        **sla.written(one.document),
        "ator": one.stored.actor,
        "alterado_em": one.stored.changed_at,
        "orcamento": None if one.budget is None else sla.budget_view(slo, one.budget),
        "congelado": any(freeze.slo == one.name for freeze in oraculo.objectives.freezes()),
    }


def told(one: ToldAlert) -> dict[str, Any]:
    """An alert as the API shows it."""
    return {"id": one.id, "tipo": one.kind, "em": one.at, "registro": strict_json.loads_trusted(one.body)}


@router.get(
    "",
    summary="List objectives",
    description="By name, each with its error budget.",
    response_class=Response,
    responses={200: answer(slo_documents.SloList, "The objectives")},
)
@needs(Scope.RUN_READ)
async def find(oraculo: Running) -> Response:
    book = oraculo.objectives
    return answered({"medidos": book.measured, "slos": [shown(oraculo, one) for one in await book.all()]})


@router.put(
    "/{nome:segment}",
    summary="Keep an objective",
    description="Ends of runs and tickets count from then on.",
    response_class=Response,
    responses=kept(_STANDS),
    openapi_extra=body.documented(sla.Objetivo),
)
@needs(Scope.SLO_WRITE)
async def put(request: Request, oraculo: Running, nome: Nome) -> Response:
    found, new = await oraculo.objectives.put(nome, await document_for(request, nome), actor_of(request))
    return answered(shown(oraculo, found), 201 if new else 200)


@router.get(
    "/{nome:segment}",
    summary="Look at an objective",
    description="Its document, its error budget and how fast that burns.",
    response_class=Response,
    responses={200: _STANDS, **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, nome: Nome) -> Response:
    return answered(shown(oraculo, await oraculo.objectives.get(nome)))


@router.delete(
    "/{nome:segment}",
    status_code=204,
    summary="Remove an objective",
    description="What was counted of it is forgotten; a freeze of it ends.",
    response_class=Response,
    responses=REMOVED,
)
@needs(Scope.SLO_WRITE)
async def remove(request: Request, oraculo: Running, nome: Nome) -> Response:
    await oraculo.objectives.remove(nome, actor_of(request))
    return Response(status_code=204)


@told_router.get(
    "/alerts",
    summary="Alerts that were told",
    description="Newest first, in pages: deadlines that were near or missed, budgets, freezes.",
    response_class=Response,
    responses={200: answer(slo_documents.AlertPage, "A page"), **problems.documented(422)},
)
@needs(Scope.RUN_READ)
async def alerts(oraculo: Running, query: Annotated[AlertQuery, Query()]) -> Response:
    before = paging.decode("a", query.cursor)
    found = await oraculo.objectives.alerts(query.limit + 1, before)
    listed = found[: query.limit]
    following = paging.encode("a", listed[-1].seq) if len(found) > query.limit else None
    return answered({"alertas": [told(one) for one in listed], "next": following})


@told_router.get(
    "/freezes",
    summary="What is frozen",
    description="Freezes that are in force, with the sentence why.",
    response_class=Response,
    responses={200: answer(slo_documents.FreezeList, "The freezes")},
)
@needs(Scope.RUN_READ)
async def freezes(oraculo: Running) -> Response:
    found = [
        {"slo": one.slo, "servico": one.service, "acoes": one.actions, "desde": one.since, "motivo": one.reason}
        for one in oraculo.objectives.freezes()
    ]
    return answered({"congelamentos": found})
