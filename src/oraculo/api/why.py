"""Why a run or a ticket is as it is: its decisions from the journal, and what it waits for now."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import paths, problems, why_documents
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.forecasts import forecast_of
from oraculo.api.languages import ReaderLanguage
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered, store_of
from oraculo.api.tickets import TicketId, state_and_position
from oraculo.core.access import Scope
from oraculo.core.sentences import Language
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import UnknownIdError
from oraculo.service import Oraculo
from oraculo.wire.why import standing
from oraculo.wire.why.decisions import decisions
from oraculo.wire.why.telling import Telling

router = APIRouter(
    route_class=GuardedRoute, prefix=paths.API, tags=["orchestrations"], responses=problems.COMMON_RESPONSES
)

STEPS_PER_READ, STEPS_MAX = 1_000, 20_000  # of the journal, at a time and for one answer
DECISIONS_DEFAULT, DECISIONS_MAX = 500, 2_000
_MOST_EVENTS = 2**53


class WhyQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    after: int = Field(0, ge=0, le=_MOST_EVENTS, description="number of the last event already seen: `next` of before")
    limit: int = Field(DECISIONS_DEFAULT, ge=1, le=DECISIONS_MAX, description="decisions in one answer")


class RunWhyQuery(WhyQuery):
    ticket: str | None = Field(None, description="only what is about this ticket, by its id or the name of its task")


@router.get(
    "/orchestrations/{correlation_id:segment}/why",
    summary="Explain an orchestration",
    description="Its decisions, oldest first, each as a sentence with what it stands on: who got which ticket and why "
    "not others, verdicts of policies, what was predicted and what came, retries, withdrawals, and why it ended so; "
    "and what each open ticket waits for now. Read from the journal and the state: nothing is decided again.",
    response_class=Response,
    responses={200: answer(why_documents.Why, "The decisions"), **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def of_run(
    oraculo: Running,
    correlation_id: paths.CorrelationId,
    query: Annotated[RunWhyQuery, Query()],
    language: ReaderLanguage,
) -> Response:
    only = None if query.ticket is None else await _position(oraculo, correlation_id, query.ticket)
    found = await why_of(oraculo, correlation_id, language, only=only, after=query.after, limit=query.limit)
    return answered(found)


@router.get(
    "/tickets/{ticket_id:segment}/why",
    summary="Explain a ticket",
    description="The decisions about one ticket, and about its whole run, as far as they concern it.",
    response_class=Response,
    responses={200: answer(why_documents.Why, "The decisions"), **problems.documented(404, 422)},
)
@needs(Scope.RUN_READ)
async def of_ticket(
    oraculo: Running, ticket_id: TicketId, query: Annotated[WhyQuery, Query()], language: ReaderLanguage
) -> Response:
    state, position = await state_and_position(oraculo, ticket_id)
    found = await why_of(oraculo, state.run, language, only=position, after=query.after, limit=query.limit)
    return answered(found)


async def why_of(
    oraculo: Oraculo,
    which: str | int,
    language: Language,
    *,
    only: int | None = None,
    after: int = 0,
    limit: int = DECISIONS_DEFAULT,
) -> dict[str, Any]:
    """Why a run, or its ticket at the position `only`, is as it is; `next` is where to go on, None at the end."""
    state = await oraculo.state(which)
    telling = Telling(state, language, only)
    waits, total = standing.open_tickets(telling, oraculo.hold_of)
    name = local_name(state.correlation_id)
    said = {
        "correlation_id": name,
        "ticket_id": None if only is None else standing.id_of(state, only),
        "status": state.status if only is None else state.tickets[only].status,
        "resumo": standing.summary(telling, oraculo.hold_of),
        "abertos": waits,
        "abertos_total": total,
    }
    found, following = await _read(oraculo, telling, after, limit)
    return {**said, "previsao": await forecast_of(oraculo, name, language), "decisoes": found, "next": following}


async def _read(oraculo: Oraculo, telling: Telling, after: int, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Decisions from the event behind `after` on, as many as one answer has room for."""
    found: list[dict[str, Any]] = []
    store, run = store_of(oraculo), telling.state.run
    for _ in range(STEPS_MAX // STEPS_PER_READ):
        steps = await store.events(run, after, STEPS_PER_READ)
        for step in steps:
            found += decisions(telling, [step], after)
            after = max(after, step.first + len(step.events) - 1)
            if len(found) >= limit:
                return found[:limit], found[limit - 1]["seq"]
        if len(steps) < STEPS_PER_READ:
            return found, None
    return found, after


async def _position(oraculo: Oraculo, correlation_id: str, ticket: str) -> int:
    """The position of a ticket of a run, by its id, the name of its task, or its number in the plan."""
    state = await oraculo.state(correlation_id)
    known = parse_ticket_id(ticket)
    if known is not None:
        position = known[1] if known[0] == state.run else -1
    else:
        position = standing.position_named(state, ticket)
    if not 0 <= position < len(state.tickets):
        raise UnknownIdError("ticket", ticket)
    return position
