"""Dead letters: browse them, take them in again, discard them; one, or all that a filter names."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import bodies, body, documents, paging, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, answered, store_of
from oraculo.core.access import Actor, Scope
from oraculo.core.commands import RequeueTicket
from oraculo.core.tenants import local_name
from oraculo.errors import UnknownIdError, WireError
from oraculo.ports.broker import Outgoing, publish_confirmed
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.work import Fate, Work
from oraculo.service import Oraculo
from oraculo.wire import names, quarantine, views
from oraculo.wire.ticket_tokens import with_signatures_of

log = structlog.get_logger("oraculo.api")
router = APIRouter(
    route_class=GuardedRoute,
    prefix=f"{paths.API}/dead-letters",
    tags=["dead letters"],
    responses=problems.COMMON_RESPONSES,
)

BULK_PAGE_LETTERS = 50  # letters of up to 1 MiB each
FATES_THAT_KEEP_IT = (Fate.QUARANTINED, Fate.CONFLICT, Fate.UNKNOWN)
REQUEUED, DISCARDED, PUBLISHED = "requeued", "discarded", "published"

Id = Annotated[str, Path(json_schema_extra={"type": "integer", "minimum": 1}, examples=["1"])]


class Filter(BaseModel):
    model_config = ConfigDict(extra="forbid")
    fila: str | None = Field(None, description="queue that the message came from")
    motivo: str | None = Field(None, description="reason, like `ambiguous`")


class ListQuery(Filter):
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, description="`next` of the page before")


class DiscardQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    motivo: str = Field("", max_length=1000, description="why, for the record")


class DiscardManyQuery(Filter):
    razao: str = Field("", max_length=1000, description="why, for the record; `motivo` chooses")


async def letter_of(oraculo: Oraculo, id: str) -> DeadLetter:
    if id.isascii() and id.isdigit() and len(id) <= 18:
        found = await store_of(oraculo).dead_letter(int(id))
        if found is not None:
            return found
    raise UnknownIdError("dead letter", id)


def with_body(letter: DeadLetter, text: str) -> DeadLetter:
    """The letter with other bytes; tokens in them whose signature was not shown are those of the letter. An order has
    none of its own: it is written from its orchestration."""
    if quarantine.exhausted_ticket(letter) is not None:
        raise WireError("invalid_request", "this order is written from its orchestration; requeue it without corpo")
    return replace(letter, body=with_signatures_of(text.encode(), letter.body), size=0, erased=False)


async def chosen(oraculo: Oraculo, wanted: Filter) -> AsyncIterator[list[DeadLetter]]:
    """Everything that the filter names and that is there now; what arrives meanwhile is for the next time."""
    if wanted.fila is None and wanted.motivo is None:
        raise ProblemError("filter_required", "give fila, motivo or both")
    before: int | None = None
    while letters := await store_of(oraculo).dead_letters(
        before=before, limit=BULK_PAGE_LETTERS, queue=wanted.fila, reason=wanted.motivo
    ):
        before = letters[-1].id
        yield letters


@router.get(
    "",
    summary="List dead letters",
    description="Newest first, in pages, with how many there are by queue and reason.",
    response_class=Response,
    responses={
        200: answer(documents.DeadLetterPage, "A page", headers={"Link": 'the next page, rel="next"'}),
        **problems.documented(422),
    },
)
@needs(Scope.DLQ_READ)
async def find(request: Request, oraculo: Running, query: Annotated[ListQuery, Query()]) -> Response:
    store = store_of(oraculo)
    before = paging.decode("d", query.cursor)
    found = await store.dead_letters(
        before=before, limit=query.limit + 1, queue=query.fila, reason=query.motivo, bodies=False
    )
    groups = await store.dead_letter_groups()
    shown = found[: query.limit]
    following = paging.encode("d", shown[-1].id) if len(found) > query.limit else None
    document = {
        "dead_letters": [views.dead_letter(one) for one in shown],
        "groups": [{"fila": fila, "motivo": motivo, "total": total} for fila, motivo, total in groups],
    }
    return paging.page(request, document, following)


@router.post(
    "/requeue",
    summary="Take many in again",
    description="Every dead letter that the filter names, through the door it came by. A filter is needed.",
    response_class=Response,
    responses={200: answer(documents.BulkRequeued, "What became of them"), **problems.documented(422)},
)
@needs(Scope.DLQ_REQUEUE)
async def requeue_many(request: Request, oraculo: Running, query: Annotated[Filter, Query()]) -> Response:
    return answered(await take_in_many(oraculo, query, actor_of(request)))


async def take_in_many(oraculo: Oraculo, wanted: Filter, actor: Actor) -> dict[str, Any]:
    fates: Counter[str] = Counter()
    gone = 0
    async for letters in chosen(oraculo, wanted):
        outcomes = await take_in(oraculo, letters, actor)
        fates.update(outcome["situacao"] for outcome in outcomes)
        gone += sum(outcome["removida"] for outcome in outcomes)
    return {"reenviadas": gone, "mantidas": fates.total() - gone, "situacoes": dict(fates)}


@router.delete(
    "",
    summary="Discard many",
    description="Every dead letter that the filter names. A filter is needed; there is no way back.",
    response_class=Response,
    responses={200: answer(documents.Discarded, "How many"), **problems.documented(422)},
)
@needs(Scope.DLQ_DISCARD)
async def discard_many(request: Request, oraculo: Running, query: Annotated[DiscardManyQuery, Query()]) -> Response:
    return answered({"descartadas": await throw_away_many(oraculo, query, actor_of(request))})


async def throw_away_many(oraculo: Oraculo, wanted: DiscardManyQuery, actor: Actor) -> int:
    gone = 0
    async for letters in chosen(oraculo, wanted):
        gone += await store_of(oraculo).remove_dead_letters([letter.id for letter in letters], DISCARDED)
    if gone:
        await record_discarded(oraculo, gone, wanted.fila, wanted.motivo, wanted.razao, actor=actor)
    return gone


@router.get(
    "/{id:segment}",
    summary="Look at a dead letter",
    description="With its bytes: as text when they are UTF-8, in hexadecimal otherwise.",
    response_class=Response,
    responses={200: answer(documents.DeadLetter, "The dead letter"), **problems.documented(404, 422)},
)
@needs(Scope.DLQ_READ)
async def show(oraculo: Running, id: Id) -> Response:
    return answered(views.dead_letter(await letter_of(oraculo, id), body=True))


@router.post(
    "/{id:segment}/requeue",
    summary="Take one in again",
    description="The original bytes, or `corpo` in their place, through the door they came by. It stays a dead letter, "
    "with its original bytes, when it is refused again. An order whose attempts are used up (`attempts_used_up`) gets "
    "another attempt while its orchestration is open and no fan-in has counted its end.",
    response_class=Response,
    responses={
        200: answer(documents.Requeued, "What became of it"),
        **problems.documented(404, 408, 413, 415, 422),
    },
    openapi_extra=body.documented(bodies.RequeueRequest, required=False),
)
@needs(Scope.DLQ_REQUEUE)
async def requeue(request: Request, oraculo: Running, id: Id) -> Response:
    asked = await body.optional(request, bodies.RequeueRequest)
    letter = await letter_of(oraculo, id)
    if asked.corpo is not None:
        letter = with_body(letter, asked.corpo)
    return answered((await take_in(oraculo, [letter], actor_of(request)))[0])


@router.delete(
    "/{id:segment}",
    status_code=204,
    summary="Discard one",
    description="There is no way back.",
    response_class=Response,
    responses={204: {"description": "Discarded"}, **problems.documented(404, 422)},
)
@needs(Scope.DLQ_DISCARD)
async def discard(request: Request, oraculo: Running, id: Id, query: Annotated[DiscardQuery, Query()]) -> Response:
    await throw_away(oraculo, await letter_of(oraculo, id), query.motivo, actor_of(request))
    return Response(status_code=204)


async def throw_away(oraculo: Oraculo, letter: DeadLetter, razao: str, actor: Actor) -> None:
    if not await store_of(oraculo).remove_dead_letters([letter.id], DISCARDED):
        raise UnknownIdError("dead letter", str(letter.id))
    await record_discarded(oraculo, 1, letter.queue, letter.reason, razao, letter.correlation_id, actor=actor)


async def record_discarded(
    oraculo: Oraculo,
    count: int,
    fila: str | None,
    motivo: str | None,
    razao: str,
    correlation_id: str | None = None,
    *,
    actor: Actor,
) -> None:
    """Discarded for good, and said so: in the log and in the database."""
    body = {"fila": fila, "motivo": motivo, "quantas": count, "razao": razao, "correlation_id": correlation_id}
    body["ator"] = actor.id
    log.info("dead letters discarded", **body)
    await store_of(oraculo).record_system_event(SystemEvent("dead_letters_discarded", oraculo.now(), body))


async def take_in(oraculo: Oraculo, letters: Sequence[DeadLetter], actor: Actor) -> list[dict[str, Any]]:
    """Submit what was taken from these letters, together. Doing it twice does no harm: the second is a duplicate."""
    works: list[tuple[DeadLetter, Work]] = []
    told: dict[int, dict[str, Any]] = {}
    elsewhere: list[DeadLetter] = []
    for letter in letters:
        if letter.erased:
            told[letter.id] = _told(letter, Fate.QUARANTINED, "erased")
            continue
        ticket = quarantine.exhausted_ticket(letter)
        if ticket is not None:
            run, position = ticket
            works.append((letter, Work(RequeueTicket(position, quarantine.attempts_of(letter)), run=run)))
            continue
        door = local_name(letter.queue)
        if door not in (names.RESULTS, names.REQUESTS):
            elsewhere.append(letter)
            continue
        translate = oraculo.answers if door == names.RESULTS else oraculo.requests.from_message
        work = translate(letter.body, letter.queue)
        if work.dead is not None:
            told[letter.id] = _told(letter, Fate.QUARANTINED, work.dead.reason)
            continue
        work.queue, work.body = "", b""  # refused again it must not become a second letter: this one stays
        works.append((letter, work))
    outcomes = await oraculo.submit_work([work for _, work in works], actor=actor)
    for (letter, _), outcome in zip(works, outcomes, strict=True):
        told[letter.id] = _told(letter, outcome.fate, outcome.reason)
    if elsewhere:
        messages = [Outgoing(one.queue, one.body, f"dead-letter-{one.id}") for one in elsewhere]
        await publish_confirmed(oraculo.broker, messages)
        told |= {one.id: _told(one, PUBLISHED, "") for one in elsewhere}
    done = [letter.id for letter in letters if told[letter.id]["removida"]]
    if done:
        await store_of(oraculo).remove_dead_letters(done, REQUEUED)
    return [told[letter.id] for letter in letters]


def _told(letter: DeadLetter, fate: str, reason: str) -> dict[str, Any]:
    return {
        "id": letter.id,
        "situacao": fate,
        "motivo": reason,
        "correlation_id": letter.correlation_id,
        "removida": fate not in FATES_THAT_KEEP_IT,
    }
