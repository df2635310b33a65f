"""Try a run again, and see which runs did."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from oraculo.api import bodies, body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.orchestrations import IDEMPOTENCY_PARAMETER, idempotency_key, submitted, traceparent_of
from oraculo.api.serving import Running, answered, store_of
from oraculo.core.access import Scope
from oraculo.core.reuse import RetryFrom
from oraculo.core.vocabulary import Status
from oraculo.wire import views

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)


@router.post(
    "/{correlation_id:segment}/retry",
    summary="Try a run again",
    description="A new run of the same plan, linked to this one by `origem`, which takes over what had concluded, "
    "items of maps too. Durable when the answer arrives. The same again while that run is open, or with the same "
    "`Idempotency-Key`, answers the same run.",
    response_class=Response,
    responses={
        202: answer(
            documents.RetryAccepted,
            "Accepted",
            headers={
                "Location": "where the new run is",
                "Idempotent-Replayed": "`true` when the same was asked before and this is its run",
            },
        ),
        **problems.documented(404, 408, 409, 413, 415, 422),
    },
    openapi_extra={**body.documented(bodies.RetryRequest, required=False), "parameters": [IDEMPOTENCY_PARAMETER]},
)
@needs(Scope.RUN_SUBMIT)
async def retry(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    key = idempotency_key(request)
    asked = await body.optional(request, bodies.RetryRequest)
    mode = RetryFrom.TASK if asked.tarefa is not None else RetryFrom(asked.de or RetryFrom.FAILURES)
    made = await oraculo.retry(
        correlation_id,
        mode,
        task=asked.tarefa,
        key=key,
        traceparent=traceparent_of(request),
        actor=actor_of(request),
    )
    name, status = made.correlation_id, Status.PENDENTE
    headers = {"Location": paths.orchestration(name)}
    if not made.new:
        headers["Idempotent-Replayed"] = "true"
        found = await store_of(oraculo).summary(name)
        status = found.status if found is not None else status
    return answered({**submitted(name, status), "origem": made.origin}, 202, headers)


@router.get(
    "/{correlation_id:segment}/retries",
    summary="List the runs that try a run again",
    description="The oldest first.",
    response_class=Response,
    responses={200: answer(documents.RetryList, "The runs"), **problems.documented(404)},
)
@needs(Scope.RUN_READ)
async def retries(oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    found = await oraculo.retries.of(await oraculo.run_of(correlation_id))
    return answered({"correlation_id": correlation_id, "retentativas": [views.summary(one) for one in found]})
