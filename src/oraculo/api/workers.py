"""Workers over plain HTTP: lease messages, answer them, keep them, give them back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import bodies, body, documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running, answered, waits_of
from oraculo.core.access import Scope
from oraculo.core.commands import RecordResult
from oraculo.core.tenants import in_tenant, local_name, queue_in
from oraculo.errors import UnknownIdError, WireError
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.bound_answers import FORBIDDEN_QUEUE, answer_of
from oraculo.runtime.lease import Lease
from oraculo.service import Oraculo
from oraculo.wire import names, strict_json
from oraculo.wire.json_items import PAUSE_BYTES, split_items
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.ticket_tokens import UNAUTHENTICATED

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["workers"], responses=problems.COMMON_RESPONSES)

MAX_RESULTS = 1000
MAX_LIST_BYTES = 16 * 1024 * 1024
SLICE_S = 1.0  # how long a lease goes on after its caller has gone

LeaseId = Annotated[str, Path(max_length=64, examples=["3hN0c6cW5m2Yy1l8Zq0aXQbR"])]
_RESULT = {
    "correlation_id": "abc123",
    "tipo_evento": "resultado_coleta",
    "payload": {"fonte": "youtube", "status": "ok", "dados": [1, 2], "erros": []},
    "timestamp": "2025-10-14T12:00:00Z",
}


@router.post(
    "/queues/{queue:segment}/lease",
    summary="Lease messages",
    description="Up to `max` messages as soon as there are any; an empty list after `wait` seconds. A lease lasts "
    "`lease_s` seconds (`ORACULO_LEASE_S` when it is not given); then the message goes to another worker.",
    response_class=Response,
    responses={
        200: answer(documents.Leases, "Messages, each with its lease"),
        **problems.documented(408, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.LeaseRequest, required=False),
)
@needs(Scope.LEASE_TAKE)
async def lease(
    request: Request,
    oraculo: Running,
    queue: Annotated[
        str, Path(json_schema_extra={"pattern": names.QUEUE_PATTERN, "maxLength": 200}, examples=["escavador_youtube"])
    ],
) -> Response:
    if not names.is_queue_name(queue):
        raise invalid("path.queue", f"{queue[:40]!r} does not match {names.QUEUE_PATTERN}")
    meant = queue_in(oraculo.tenant, queue)
    reserved = None if meant is None else oraculo.reserved.refuse_lease(meant)
    if reserved is not None:
        raise ProblemError("reserved_queue", reserved)
    if meant is None or not actor_of(request).may_use(meant):
        raise ProblemError("forbidden", f"this key may not lease from {queue}", scope=Scope.LEASE_TAKE)
    asked = await body.optional(request, bodies.LeaseRequest)
    leases = await _wait_for_leases(request, oraculo, meant, asked)
    document = [{"lease_id": one.lease_id, "expira_em": one.expires_at, "mensagem": _message(one)} for one in leases]
    return answered({"mensagens": document})


async def _wait_for_leases(request: Request, oraculo: Oraculo, queue: str, asked: bodies.LeaseRequest) -> list[Lease]:
    """In short turns, none of them cancelled: a message that was fetched is leased or given back, never dropped."""
    leases, waits = oraculo.leases, waits_of(request)
    length = timedelta(seconds=asked.lease_s or oraculo.settings.lease_s)
    clock = asyncio.get_running_loop().time
    until = clock() + asked.wait
    with waits.watch(request.receive) as over:
        while True:
            left = 0.0 if over.done() or waits.stopping else until - clock()
            found = await leases.lease(queue, asked.max, max(0.0, min(left, SLICE_S)), asked.worker, length)
            if over.done() and found:
                for one in found:
                    await leases.release(one.lease_id)
                return []
            if found or left <= 0:
                return found


def _message(one: Lease) -> Any:
    """The bytes as they are when they are JSON; as text when they are not, so that the worker sees them."""
    message = one.delivery.body
    if one.ticket is not None:
        return message
    try:
        strict_json.loads(message, max_bytes=len(message))
    except WireError:
        return message.decode("utf-8", "replace")
    return message


@router.post(
    "/results",
    status_code=202,
    summary="Hand in results",
    description="One result envelope or a list of them (1 MiB each, 16 MiB together); durable when the answer arrives, "
    "and the leases of their tickets are settled. A single envelope that cannot be read is refused with 422. In a list "
    "such envelopes are kept as dead letters and reported in `recusados`, and the others count. With "
    "`ORACULO_RESULT_TOKENS`, one without the right `token` is kept as a dead letter, and refused with 403 "
    "`unauthenticated` when it comes alone.",
    response_class=Response,
    responses={
        202: answer(documents.Results, "Taken in; what became of each"),
        **problems.documented(408, 413, 415, 422),
    },
    openapi_extra=body.documented("Resultados", examples={"one": _RESULT, "many": [_RESULT]}),
)
@needs(Scope.RESULT_WRITE)
async def results(request: Request, oraculo: Running) -> Response:
    raw = await body.typed(request, MAX_LIST_BYTES)
    actor, queue = actor_of(request), in_tenant(oraculo.tenant, names.RESULTS)
    if raw.lstrip(b" \t\r\n")[:1] == b"[":
        works = [
            await answer_of(actor, work, oraculo.engine.state_of)
            for work in await judged(oraculo, await _works_of(raw, queue, oraculo.answers))
        ]
    else:
        if len(raw) > body.MAX_BYTES:
            raise ProblemError("too_large", f"an envelope has at most {body.MAX_BYTES} bytes")
        [work] = await judged(oraculo, [oraculo.answers(raw, queue)])
        work = await answer_of(actor, work, oraculo.engine.state_of)
        request.state.correlation_id = work.correlation_id
        if work.dead is not None and work.dead.reason == FORBIDDEN_QUEUE:
            raise ProblemError("forbidden", work.dead.detail, scope=Scope.RESULT_WRITE)
        if work.dead is not None and work.dead.reason == UNAUTHENTICATED:
            await oraculo.submit_work([work], actor=actor)  # kept and counted, as from any queue
            raise ProblemError(UNAUTHENTICATED, work.dead.detail)
        if work.dead is not None:
            raise WireError(work.dead.reason, work.dead.detail)
        works = [work]
    for work in works:
        if isinstance(work.command, RecordResult):
            oraculo.leases.measure(work.command)
    outcomes = await oraculo.submit_work(works, actor=actor)
    await settle(oraculo, works, outcomes)
    return answered(_told(works, outcomes), 202)


async def _works_of(raw: bytes, queue: str, read: AnswerReader) -> list[Work]:
    """The work of each envelope of a list. A long list is read piece by piece, and others have their turn meanwhile."""
    if len(raw) <= body.MAX_BYTES:
        strict_json.loads(raw)  # a list with a fault in it is refused whole
    works: list[Work] = []
    size = 0
    for item in split_items(raw):
        if item is None or (size := size + len(item)) > PAUSE_BYTES:
            size = 0
            await asyncio.sleep(0)
        if item is not None:
            if len(works) == MAX_RESULTS:
                raise invalid("(corpo)", f"at most {MAX_RESULTS} envelopes are allowed", "invalid_request")
            works.append(read(item, queue))
    return works


async def judged(oraculo: Oraculo, works: list[Work]) -> list[Work]:
    """The same as their signatures allow."""
    guard = oraculo.answer_guard
    return works if guard is None else await guard.judged([(work.body, NO_HEADERS) for work in works], works)


async def settle(oraculo: Oraculo, works: list[Work], outcomes: list[Outcome]) -> None:
    leases = oraculo.leases
    unsaid: set[int] = set()
    for work, outcome in zip(works, outcomes, strict=True):
        if outcome.fate is Fate.QUARANTINED or not isinstance(work.command, RecordResult):
            continue
        if work.command.ticket is not None:
            await leases.answered(work.command.ticket, work.command.attempt, work.command)
        else:
            unsaid.add(outcome.run)
    if unsaid:
        await leases.answered_without_ticket(unsaid)


def _told(works: list[Work], outcomes: list[Outcome]) -> dict[str, Any]:
    refused: list[dict[str, Any]] = []
    taken: list[dict[str, Any]] = []
    for index, (work, outcome) in enumerate(zip(works, outcomes, strict=True)):
        if outcome.fate is Fate.QUARANTINED:
            detail = work.dead.detail if work.dead is not None else "kept as a dead letter"
            refused.append(
                {
                    "indice": index,
                    "motivo": outcome.reason,
                    "detalhe": detail,
                    "correlation_id": local_name(work.correlation_id) or None,
                }
            )
        else:
            ticket = work.command.ticket if isinstance(work.command, RecordResult) else None
            taken.append(
                {"correlation_id": local_name(work.correlation_id), "ticket_id": ticket, "situacao": outcome.fate}
            )
    return {"aceitos": len(taken), "recusados": refused, "resultados": taken}


@router.post(
    "/leases/{lease_id:segment}/extend",
    summary="Keep a lease",
    description="From now on it lasts its length again, or `lease_s`. 410: the ticket needs no answer any more, stop.",
    response_class=Response,
    responses={
        200: answer(documents.Extended, "Until when"),
        **problems.documented(404, 408, 410, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.ExtendRequest, required=False),
)
@needs(Scope.LEASE_TAKE)
async def extend(request: Request, oraculo: Running, lease_id: LeaseId) -> Response:
    asked = await body.optional(request, bodies.ExtendRequest)
    leases = oraculo.leases
    _check_lease(request, oraculo, lease_id)
    kept = leases.extend(lease_id, None if asked.lease_s is None else timedelta(seconds=asked.lease_s))
    if not await leases.still_wanted(kept):
        await leases.release(lease_id)  # whoever takes it next sees that it is done with
        raise ProblemError("not_wanted", "the ticket was answered, cancelled or closed; the lease is over")
    return answered({"lease_id": lease_id, "expira_em": kept.expires_at})


@router.delete(
    "/leases/{lease_id:segment}",
    status_code=204,
    summary="Be done with a message that wants no result",
    description="For what `notificar.fila` published. An order is settled by its result, or given back with `release`.",
    response_class=Response,
    responses={204: {"description": "It does not come again"}, **problems.documented(404, 409, 422)},
)
@needs(Scope.LEASE_TAKE)
async def done(request: Request, oraculo: Running, lease_id: LeaseId) -> Response:
    _check_lease(request, oraculo, lease_id)
    if not await oraculo.leases.done(lease_id):
        raise ProblemError("wants_result", "the message is an order: hand in its result, or release it")
    return Response(status_code=204)


@router.post(
    "/leases/{lease_id:segment}/release",
    status_code=204,
    summary="Give a message back",
    description="Another worker gets it, at once or after `delay_s`.",
    response_class=Response,
    responses={204: {"description": "Given back"}, **problems.documented(404, 408, 413, 415, 422)},
    openapi_extra=body.documented(bodies.ReleaseRequest, required=False),
)
@needs(Scope.LEASE_TAKE)
async def release(request: Request, oraculo: Running, lease_id: LeaseId) -> Response:
    asked = await body.optional(request, bodies.ReleaseRequest)
    _check_lease(request, oraculo, lease_id)
    await oraculo.leases.release(lease_id, asked.delay_s)
    return Response(status_code=204)


def _check_lease(request: Request, oraculo: Oraculo, lease_id: str) -> None:
    """A lease of a queue that the key does not have is unknown to it."""
    queue = oraculo.leases.queue_of(lease_id)
    if queue is None or not actor_of(request).may_use(queue):
        raise UnknownIdError("lease", lease_id)
