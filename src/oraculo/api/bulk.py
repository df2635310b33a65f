"""The same done to many orchestrations: all that a filter names."""

from __future__ import annotations

from typing import Any

import structlog
from fastapi import APIRouter, Request, Response

from oraculo.api import body, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.bodies import BulkRequest
from oraculo.api.bulk_documents import BulkDone
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError, problem_of
from oraculo.api.serving import Running, answered, store_of
from oraculo.core.access import Actor, Scope
from oraculo.core.reuse import RetryFrom
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.bulk import BulkAction, BulkOrder, BulkTally
from oraculo.service import Oraculo

log = structlog.get_logger("oraculo.api")
router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)


@router.post(
    "/bulk",
    summary="Cancel, retry, pause or resume many",
    description="Every orchestration that the filter names (the fields of the list) and that the action can be done "
    "to: open ones, for `retry` ended ones that failed and were not tried again yet. At least one condition is needed. "
    "The newest first, 10,000 at most a call; `restantes` says how many were not reached. Durable when the answer "
    "arrives; repeating it is safe. `simular` only counts.",
    response_class=Response,
    responses={200: answer(BulkDone, "What became of them"), **problems.documented(408, 413, 415, 422)},
    openapi_extra=body.documented(BulkRequest),
)
@needs(Scope.RUN_CANCEL)
async def bulk(request: Request, oraculo: Running) -> Response:
    asked = await body.required(request, BulkRequest)
    actor = actor_of(request)
    if asked.acao is BulkAction.RETRY and not actor.may(Scope.RUN_SUBMIT):
        raise ProblemError("forbidden", f"the scope {Scope.RUN_SUBMIT} is needed", scope=Scope.RUN_SUBMIT)
    if not asked.filtro.model_fields_set:
        raise ProblemError("filter_required", "give at least one condition in filtro")
    query = asked.filtro.wanted(oraculo.queue_names)
    if asked.simular:
        return answered(_told(asked, BulkTally(await oraculo.bulk.count(query, _order(asked)))))
    tally = await oraculo.bulk.carry_out(query, _order(asked), actor)
    await _record(oraculo, asked, tally, actor)
    return answered(_told(asked, tally))


def _order(asked: BulkRequest) -> BulkOrder:
    return BulkOrder(asked.acao, asked.motivo, asked.desfazer, RetryFrom(asked.de or RetryFrom.FAILURES))


def _told(asked: BulkRequest, tally: BulkTally) -> dict[str, Any]:
    return {
        "acao": asked.acao,
        "simular": asked.simular,
        "total": tally.total,
        "feitas": tally.done,
        "inalteradas": tally.unchanged,
        "recusadas": tally.refused,
        "restantes": tally.left,
        "erros": [_error(name, problem_of(error)) for name, error in tally.errors],
        "parou": None if tally.stopped is None else _error(None, problem_of(tally.stopped)),
    }


def _error(correlation_id: str | None, problem: ProblemError) -> dict[str, Any]:
    return {"correlation_id": correlation_id, "codigo": problem.code, "mensagem": problem.detail}


async def _record(oraculo: Oraculo, asked: BulkRequest, tally: BulkTally, actor: Actor) -> None:
    """Say who did what to how many: in the log and in the database."""
    told = {
        "acao": asked.acao.value,
        "filtro": asked.filtro.model_dump(exclude_defaults=True),
        "feitas": tally.done,
        "total": tally.total,
        "motivo": asked.motivo,
        "ator": actor.id,
    }
    log.info("orchestrations changed in bulk", **told)
    await store_of(oraculo).record_system_event(SystemEvent("orchestrations_changed_in_bulk", oraculo.now(), told))
