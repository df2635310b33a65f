"""Workers over plain HTTP: lease messages, answer them, keep them, give them back; and who is working at all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import bodies, body, documents, paths, problems
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running, answered, waits_of
from oraculo.bootstrap import Oraculo
from oraculo.core.commands import RecordResult
from oraculo.errors import WireError
from oraculo.runtime.gateway import Lease
from oraculo.runtime.intake import result_work
from oraculo.runtime.work import Fate, Outcome, Work
from oraculo.wire import names, strict_json

router = APIRouter(prefix=paths.API, tags=["workers"], responses=problems.COMMON)

MAX_RESULTS = 1000
MAX_LIST_BYTES = 16 * 1024 * 1024
SLICE_S = 1.0  # how long a lease that nobody waits for any more may go on

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
async def lease(
    request: Request,
    oraculo: Running,
    queue: Annotated[
        str, Path(json_schema_extra={"pattern": names.QUEUE_PATTERN, "maxLength": 200}, examples=["escavador_youtube"])
    ],
) -> Response:
    if not names.is_queue_name(queue):
        raise invalid("path.queue", f"{queue[:40]!r} does not match {names.QUEUE_PATTERN}")
    if queue in (names.RESULTS, names.REQUESTS):
        raise ProblemError("reserved_queue", f"{queue} is read by the orchestrator; workers lease from their own queue")
    asked = await body.optional(request, bodies.LeaseRequest)
    leases = await _wait_for_leases(request, oraculo, queue, asked)
    document = [{"lease_id": one.lease_id, "expira_em": one.expires_at, "mensagem": _message(one)} for one in leases]
    return answered({"mensagens": document})


async def _wait_for_leases(request: Request, oraculo: Oraculo, queue: str, asked: bodies.LeaseRequest) -> list[Lease]:
    """In short turns, none of them cancelled: a message that was fetched is leased or given back, never dropped."""
    gateway, waits = oraculo.engine.gateway, waits_of(request)
    length = timedelta(seconds=asked.lease_s or oraculo.settings.lease_s)
    clock = asyncio.get_running_loop().time
    until = clock() + asked.wait
    with waits.watch(request.receive) as over:
        while True:
            left = 0.0 if over.done() or waits.stopping else until - clock()
            leases = await gateway.lease(queue, asked.max, max(0.0, min(left, SLICE_S)), asked.worker, length)
            if over.done() and leases:
                for one in leases:
                    await gateway.release(one.lease_id)
                return []
            if leases or left <= 0:
                return leases


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
    "such envelopes are kept as dead letters and reported in `recusados`, and the others count.",
    response_class=Response,
    responses={
        202: answer(documents.Results, "Taken in; what became of each"),
        **problems.documented(408, 413, 415, 422),
    },
    openapi_extra=body.documented("Resultados", examples={"one": _RESULT, "many": [_RESULT]}),
)
async def results(request: Request, oraculo: Running) -> Response:
    value, raw = await body.value(request, MAX_LIST_BYTES)
    if isinstance(value, list):
        if len(value) > MAX_RESULTS:
            raise invalid("(corpo)", f"{len(value)} envelopes; at most {MAX_RESULTS} are allowed", "invalid_request")
        works = [result_work(strict_json.dumps(item), names.RESULTS) for item in value]
    else:
        if len(raw) > body.MAX_BYTES:
            raise ProblemError("too_large", f"an envelope has at most {body.MAX_BYTES} bytes")
        work = result_work(raw, names.RESULTS)
        request.state.correlation_id = work.correlation_id
        if work.dead is not None:
            raise WireError(work.dead.reason, work.dead.detail)
        works = [work]
    outcomes = await oraculo.engine.submit(works)
    await _settle(oraculo, works, outcomes)
    return answered(_told(works, outcomes), 202)


async def _settle(oraculo: Oraculo, works: list[Work], outcomes: list[Outcome]) -> None:
    gateway = oraculo.engine.gateway
    unsaid: set[int] = set()
    for work, outcome in zip(works, outcomes, strict=True):
        if outcome.fate is Fate.QUARANTINED or not isinstance(work.command, RecordResult):
            continue
        if work.command.ticket is not None:
            await gateway.answered(work.command.ticket, work.command.attempt)
        else:
            unsaid.add(outcome.run)
    if unsaid:
        await gateway.answered_without_ticket(unsaid)


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
                    "correlation_id": work.correlation_id or None,
                }
            )
        else:
            ticket = work.command.ticket if isinstance(work.command, RecordResult) else None
            taken.append({"correlation_id": work.correlation_id, "ticket_id": ticket, "situacao": outcome.fate})
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
async def extend(request: Request, oraculo: Running, lease_id: LeaseId) -> Response:
    asked = await body.optional(request, bodies.ExtendRequest)
    gateway = oraculo.engine.gateway
    kept = gateway.extend(lease_id, None if asked.lease_s is None else timedelta(seconds=asked.lease_s))
    if not await gateway.still_wanted(kept):
        await gateway.release(lease_id)  # whoever takes it next sees that it is done with
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
async def done(oraculo: Running, lease_id: LeaseId) -> Response:
    if not await oraculo.engine.gateway.done(lease_id):
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
async def release(request: Request, oraculo: Running, lease_id: LeaseId) -> Response:
    asked = await body.optional(request, bodies.ReleaseRequest)
    await oraculo.engine.gateway.release(lease_id, asked.delay_s)
    return Response(status_code=204)


@router.get(
    "/workers",
    summary="Who is working",
    description="Workers over HTTP and over the broker that were seen lately, and workers of this process: their "
    "queues, when they were last seen, how many messages they hold; and how full the queues are, where the broker can "
    "say. Those over the broker are known by the answers that this process took; one that gives no `worker` in its "
    "envelope is named by its queue.",
    response_class=Response,
    responses={200: answer(documents.Workers, "Workers and queues")},
)
async def workers(oraculo: Running) -> Response:
    return answered(who_works(oraculo))


def who_works(oraculo: Oraculo) -> dict[str, Any]:
    gateway = oraculo.engine.gateway
    held = gateway.load()
    outside = [
        {
            "nome": seen.name,
            "transporte": seen.over,
            "filas": sorted(seen.queues),
            "visto_em": seen.last_seen,
            "em_andamento": held.get(seen.name, 0) if seen.over == "http" else None,
            "entregues": seen.leased if seen.over == "http" else None,
            "respondidas": seen.answered,
        }
        for seen in gateway.workers.values()
    ]
    inside = [
        {
            "nome": worker.name,
            "transporte": "processo",
            "filas": sorted(worker.queues),
            "visto_em": oraculo.now(),
            "em_andamento": worker.busy,
            "entregues": None,
            "respondidas": None,
        }
        for worker in oraculo.workers
    ]
    return {"workers": [*inside, *outside], "filas": _queues(oraculo)}


def _seconds(age: float | None) -> float | None:
    return None if age is None else round(age, 3)


def _queues(oraculo: Oraculo) -> list[dict[str, Any]]:
    """As they are now inside the process; as the last look found them on servers, all brokers together."""
    depths: dict[str, tuple[int, int]] = getattr(oraculo.broker, "depths", dict)()
    ages: dict[str, float] = getattr(oraculo.broker, "ages", dict)()
    filas: dict[str, dict[str, Any]] = {
        name: {"fila": name, "aguardando": waiting, "em_andamento": taken, "mais_antiga_s": _seconds(ages.get(name))}
        for name, (waiting, taken) in depths.items()
    }
    prober = oraculo.engine.prober
    for probe in prober.found.values() if prober is not None else ():
        for name, backlog in probe.backlogs.items():
            one = filas.setdefault(
                name, {"fila": name, "aguardando": None, "em_andamento": None, "mais_antiga_s": None}
            )
            if backlog.waiting is not None:
                one["aguardando"] = (one["aguardando"] or 0) + backlog.waiting
            if backlog.oldest_s is not None:
                one["mais_antiga_s"] = max(one["mais_antiga_s"] or 0.0, round(backlog.oldest_s, 3))
    return [filas[name] for name in sorted(filas)]
