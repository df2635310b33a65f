"""Ask for an orchestration, list them, look at one, cancel it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from oraculo.api import bodies, body, documents, paging, paths, problems, run_documents
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.cached_view import json_view
from oraculo.api.forecasts import forecast_of
from oraculo.api.languages import ReaderLanguage
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError
from oraculo.api.run_filter import RunFilter
from oraculo.api.serving import Running, answered, raw, store_of
from oraculo.core.access import Scope
from oraculo.core.vocabulary import Status
from oraculo.errors import DuplicateCorrelationError
from oraculo.ports.catalogue import Summary
from oraculo.service import Oraculo
from oraculo.wire import strict_json, trace_context, views
from oraculo.wire.requests import Requisicao

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)

_EXAMPLES = {
    "collect and execute": Requisicao.model_config["json_schema_extra"]["examples"][0],  # type: ignore[index]
    "task type": Requisicao.model_config["json_schema_extra"]["examples"][1],  # type: ignore[index]
}
IDEMPOTENCY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 visible characters. The same key with the same body answers the same orchestration "
    "(`Idempotent-Replayed: true`); with another body it is refused with 422.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def links(correlation_id: str) -> dict[str, str]:
    here = paths.orchestration(correlation_id)
    return {
        "self": here,
        **{name: f"{here}/{name}" for name in ("result", "events", "stream", "cancel", "pause", "resume")},
    }


def submitted(correlation_id: str, status: Status | None) -> dict[str, Any]:
    return {"correlation_id": correlation_id, "status": status, "links": links(correlation_id)}


def idempotency_key(request: Request) -> str | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1:
        raise ProblemError("invalid_idempotency_key", "the header came more than once")
    key = given[0]
    if not 1 <= len(key) <= 255 or not all("!" <= letter <= "~" for letter in key):
        raise ProblemError("invalid_idempotency_key", "1 to 255 visible ASCII characters are allowed")
    return key


def traceparent_of(request: Request) -> str | None:
    """The trace that this call belongs to; where no traces are made, the caller's is passed on."""
    made: str | None = request.scope.get(trace_context.HEADER)
    return made if made is not None else trace_context.parse(request.headers.get(trace_context.HEADER))


@router.post(
    "",
    status_code=202,
    summary="Start an orchestration",
    description="Durable when the answer arrives. The same `correlation_id` again with the same body answers the same "
    "orchestration, with another body 409. A request with `unica` that equals one before it is merged into that one's "
    "orchestration: `juntada` is true and `correlation_id` names it.",
    response_class=Response,
    responses={
        202: answer(
            documents.Submitted,
            "Accepted",
            headers={
                "Location": "where the orchestration is",
                "Idempotent-Replayed": "`true` when the same request came before and this is its orchestration",
            },
        ),
        **problems.documented(408, 409, 413, 415, 422),
    },
    openapi_extra={**body.documented(Requisicao, examples=_EXAMPLES), "parameters": [IDEMPOTENCY_PARAMETER]},
)
@needs(Scope.RUN_SUBMIT, submits=True)
async def submit(request: Request, oraculo: Running) -> Response:
    key = idempotency_key(request)
    value, _ = await body.value(request)
    wanted = oraculo.requests.read(value)
    request.state.correlation_id = wanted.correlation_id
    traceparent = traceparent_of(request)
    accepted = await oraculo.requests.accept(wanted, key, traceparent, actor=actor_of(request))
    name = accepted.correlation_id
    if wanted.correlation_id not in (None, name) and wanted.unica is None and not accepted.merged:
        raise DuplicateCorrelationError("Idempotency-Key", key or "")
    headers = {"Location": paths.orchestration(name)}
    status: Status | None = Status.PENDENTE
    if not accepted.new:
        found = await store_of(oraculo).summary(name)
        status = found.status if found is not None else None if accepted.merged else status
        if not accepted.merged:
            headers["Idempotent-Replayed"] = "true"
    more = {"juntada": True} if accepted.merged else {}
    return answered({**submitted(name, status), **more}, 202, headers)


class ListQuery(RunFilter):
    place: ClassVar[str] = "query"
    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, description="`next` of the page before")


@router.get(
    "",
    summary="List orchestrations",
    description="Newest first, in pages; the address of the next page is in `Link` too.",
    response_class=Response,
    responses={
        200: answer(documents.SummaryPage, "A page", headers={"Link": 'the next page, rel="next"'}),
        **problems.documented(422),
    },
)
@needs(Scope.RUN_READ)
async def find(request: Request, oraculo: Running, query: Annotated[ListQuery, Query()]) -> Response:
    shown, following = await page_of(oraculo, query)
    return paging.page(request, {"orchestrations": [views.summary(one) for one in shown]}, following)


async def page_of(oraculo: Oraculo, query: ListQuery) -> tuple[list[Summary], str | None]:
    """A page of the list and the cursor of the next one."""
    wanted = replace(
        query.wanted(oraculo.queue_names), before_run=paging.decode("o", query.cursor), limit=query.limit + 1
    )
    found = await store_of(oraculo).find(wanted)
    shown = found[: query.limit]
    return shown, paging.encode("o", shown[-1].run) if len(found) > query.limit else None


@router.get(
    "/{correlation_id:segment}",
    summary="Look at an orchestration",
    description="Its tickets, what it waits for, and the aggregate so far.",
    response_class=Response,
    responses={200: answer(run_documents.Orchestration, "The orchestration"), **problems.documented(404)},
)
@needs(Scope.RUN_READ)
async def show(oraculo: Running, correlation_id: paths.CorrelationId, language: ReaderLanguage) -> Response:
    document = await json_view(oraculo, correlation_id, language)
    run = await oraculo.run_of(correlation_id)
    tried = [one.correlation_id for one in await oraculo.retries.of(run)]
    ahead = await forecast_of(oraculo, correlation_id, language)
    more = strict_json.dumps({"retentativas": tried, "previsao": ahead, **await _merges(oraculo, document, run)})
    return raw(b"%b,%b" % (document[:-1], more[1:]))


async def _merges(oraculo: Oraculo, document: bytes, run: int) -> dict[str, Any]:
    """What was merged into a run whose request exists once; only such a document has the word."""
    holder = await oraculo.store.key_holder(run) if b'"unica":{' in document else None
    return {} if holder is None else {"juntadas": views.merges(holder)}


@router.post(
    "/{correlation_id:segment}/cancel",
    summary="Cancel an orchestration",
    description="Cascades to its open tickets; durable when the answer arrives. Cancelling what has ended, or is being "
    "undone, changes nothing and says so: `cancelada` is false.",
    response_class=Response,
    responses={
        200: answer(documents.Cancelled, "Where it stands now"),
        **problems.documented(404, 408, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.CancelRunRequest, required=False),
)
@needs(Scope.RUN_CANCEL)
async def cancel(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    asked = await body.optional(request, bodies.CancelRunRequest)
    cancelled = await oraculo.cancel(correlation_id, asked.motivo, actor=actor_of(request), undo=asked.desfazer)
    state = await oraculo.state(correlation_id)
    return answered({"correlation_id": correlation_id, "status": state.status, "cancelada": cancelled})
