"""Ask for an orchestration, list them, look at one, cancel it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from oraculo.api import bodies, body, documents, paging, paths, problems
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running, answered, raw, store_of
from oraculo.bootstrap import Oraculo
from oraculo.core.vocabulary import Kind, Status
from oraculo.errors import DuplicateCorrelationError, WireError
from oraculo.ports.store import Query as StoreQuery
from oraculo.ports.store import Summary
from oraculo.wire import mensagem, names, trace_context, views
from oraculo.wire.requests import Requisicao

router = APIRouter(prefix=paths.ORCHESTRATIONS, tags=["orchestrations"], responses=problems.COMMON)

_STATUSES = [status.value for status in Status]
_EXAMPLES = {
    "collect and execute": Requisicao.model_config["json_schema_extra"]["examples"][0],  # type: ignore[index]
    "task type": Requisicao.model_config["json_schema_extra"]["examples"][1],  # type: ignore[index]
}
# Nothing began before or after; what is beyond would not fit into the numbers that stores use.
_EARLIEST, _LATEST = datetime(1971, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 visible characters. The same key with the same body answers the same orchestration "
    "(`Idempotent-Replayed: true`); with another body it is refused with 422.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def links(correlation_id: str) -> dict[str, str]:
    here = paths.orchestration(correlation_id)
    return {"self": here, **{name: f"{here}/{name}" for name in ("result", "events", "stream", "cancel")}}


def submitted(correlation_id: str, status: Status) -> dict[str, Any]:
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


@router.post(
    "",
    status_code=202,
    summary="Start an orchestration",
    description="Durable when the answer arrives. The same `correlation_id` again with the same body answers the same "
    "orchestration, with another body 409.",
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
    openapi_extra={**body.documented(Requisicao, examples=_EXAMPLES), "parameters": [_KEY_PARAMETER]},
)
async def submit(request: Request, oraculo: Running) -> Response:
    key = idempotency_key(request)
    value, _ = await body.value(request)
    wanted = oraculo.reception.read(value)
    request.state.correlation_id = wanted.correlation_id
    if wanted.tipo is not None and wanted.tipo not in (known := oraculo.reception.task_types()):
        detail = f"unknown task type {wanted.tipo!r}; known: {', '.join(sorted(known)) or 'none yet'}"
        raise ProblemError(
            "unknown_task_type", detail, errors=[{"campo": "tipo", "mensagem": detail}], known=sorted(known)
        )
    traceparent = request.scope.get(trace_context.HEADER)
    if traceparent is None:  # nobody here makes traces; the caller's is passed on
        traceparent = trace_context.parse(request.headers.get(trace_context.HEADER))
    accepted = await oraculo.reception.accept(wanted, key, traceparent)
    name = accepted.correlation_id
    if wanted.correlation_id is not None and wanted.correlation_id != name:
        raise DuplicateCorrelationError("Idempotency-Key", key or "")
    headers = {"Location": paths.orchestration(name)}
    status = Status.PENDENTE
    if not accepted.new:
        headers["Idempotent-Replayed"] = "true"
        found = await store_of(oraculo).summary(name)
        status = found.status if found is not None else status
    return answered(submitted(name, status), 202, headers)


class ListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    status: list[Annotated[str, WithJsonSchema({"type": "string", "enum": _STATUSES})]] = Field(
        default_factory=list, description=f"repeated or separated by commas; of {', '.join(_STATUSES)}"
    )
    fonte: Annotated[str, Field(pattern=names.NAME_PATTERN)] | None = None
    executador: Annotated[str, Field(pattern=names.NAME_PATTERN)] | None = None
    since: Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})] | None = Field(
        None, description="began at or after; ISO 8601 with a zone"
    )
    until: Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})] | None = Field(
        None, description="began before; ISO 8601 with a zone"
    )
    texto: Annotated[str, Field(max_length=128)] | None = Field(None, description="how the correlation_id begins")
    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, description="`next` of the page before")

    def statuses(self) -> list[Status]:
        given = [part.strip() for text in self.status for part in text.split(",")]
        unknown = [part for part in given if part not in _STATUSES]
        if unknown:
            raise invalid("query.status", f"unknown status {unknown[0][:40]!r}; allowed: {', '.join(_STATUSES)}")
        return [Status(part) for part in given]

    def destino(self) -> str | None:
        if self.fonte is not None and self.executador is not None:
            raise invalid("query.executador", "give fonte or executador, not both")
        if self.executador is not None:
            return names.queue_of(Kind.EXECUCAO, self.executador)
        return None if self.fonte is None else names.queue_of(Kind.COLETA, self.fonte)

    def wanted(self) -> StoreQuery:
        """As the store takes it, without a cursor."""
        return StoreQuery(
            status=self.statuses(),
            destino=self.destino(),
            since=_instant("query.since", self.since),
            until=_instant("query.until", self.until),
            text=self.texto,
            limit=self.limit,
        )


def _instant(name: str, given: str | None) -> datetime | None:
    if given is None:
        return None
    text = given.replace(" ", "+")  # a plus that was not percent-encoded
    try:
        mensagem.check_timestamp(name, text)
        return min(max(datetime.fromisoformat(text).astimezone(UTC), _EARLIEST), _LATEST)
    except (WireError, OverflowError):
        raise invalid(name, "allowed: ISO 8601 with a zone, like 2025-10-14T12:00:00Z") from None


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
async def find(request: Request, oraculo: Running, query: Annotated[ListQuery, Query()]) -> Response:
    shown, following = await page_of(oraculo, query)
    return paging.page(request, {"orchestrations": [views.summary(one) for one in shown]}, following)


async def page_of(oraculo: Oraculo, query: ListQuery) -> tuple[list[Summary], str | None]:
    """A page of the list and the cursor of the next one."""
    wanted = replace(query.wanted(), before_run=paging.decode("o", query.cursor), limit=query.limit + 1)
    found = await store_of(oraculo).find(wanted)
    shown = found[: query.limit]
    return shown, paging.encode("o", shown[-1].run) if len(found) > query.limit else None


@router.get(
    "/{correlation_id:segment}",
    summary="Look at an orchestration",
    description="Its tickets, what it waits for, and the aggregate so far.",
    response_class=Response,
    responses={200: answer(documents.Orchestration, "The orchestration"), **problems.documented(404)},
)
async def show(oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    return raw(await oraculo.shown(correlation_id))


@router.post(
    "/{correlation_id:segment}/cancel",
    summary="Cancel an orchestration",
    description="Cascades to its open tickets; durable when the answer arrives. Cancelling what has ended changes "
    "nothing and says so: `cancelada` is false.",
    response_class=Response,
    responses={
        200: answer(documents.Cancelled, "Where it stands now"),
        **problems.documented(404, 408, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.CancelRequest, required=False),
)
async def cancel(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    asked = await body.optional(request, bodies.CancelRequest)
    cancelled = await oraculo.cancel(correlation_id, asked.motivo)
    state = await oraculo.state(correlation_id)
    return answered({"correlation_id": correlation_id, "status": state.status, "cancelada": cancelled})
