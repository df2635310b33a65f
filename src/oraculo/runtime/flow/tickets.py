"""The ticket service of the original as views and commands: tickets of plans as records, and tickets that come alone.

There is no store of tickets beside the journal. A list reads the plans, newest first; a ticket that comes alone, and
what compensates another one, is a plan of one task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from oraculo.core.access import Actor
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import flow_in
from oraculo.core.plan import NoticeTargets
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id, ticket_id
from oraculo.core.vocabulary import TicketStatus
from oraculo.errors import TicketStatusError, UnknownIdError, WireError
from oraculo.ports.catalogue import Query
from oraculo.ports.store import Store
from oraculo.runtime.flow.plans import PlanIntake, Taken, key_of
from oraculo.runtime.ids import new_correlation_id
from oraculo.wire.flow.ticket_requests import (
    TICKET_PREFIX,
    CompensationRequest,
    TicketRequest,
    compensation_plan_id,
    plan_of_compensation,
    plan_of_ticket,
)
from oraculo.wire.flow.tickets import execution_ticket

PAGE_PLANS = 50  # plans that are looked up at a time
LISTED_PLANS_MAX = 500  # plans that one request looks at; a cursor goes on behind them
COMPENSABLE = (TicketStatus.RUNNING, TicketStatus.FAILED, TicketStatus.COMPLETED)
StateOf = Callable[[int], Awaitable[Orchestration]]
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TicketFilter:
    """What a list is narrowed to; None narrows nothing."""

    plan_id: str | None = None
    intent_id: str | None = None
    status: TicketStatus | None = None

    def takes(self, record: Record) -> bool:
        return (self.intent_id is None or record["intent_id"] == self.intent_id) and (
            self.status is None or record["status"] == self.status
        )


class TicketPlace(NamedTuple):
    """Where a ticket stands in the list of all."""

    run: int
    position: int


@dataclass(frozen=True, slots=True)
class TicketPage:
    """`total` counts all that the filter takes, None when not all plans were looked at. `last` is where the page ends
    when there may be more behind it."""

    records: list[Record]
    total: int | None
    last: TicketPlace | None = None


class TicketDesk:
    """`state_of` gives the orchestration of a number that the caller may see, or raises UnknownIdError."""

    def __init__(self, plans: PlanIntake, store: Store, state_of: StateOf, now: Callable[[], datetime]) -> None:
        self._plans = plans
        self._store = store
        self._state_of = state_of
        self._now = now

    # -- views -------------------------------------------------------------------------------------------------------

    async def page(self, wanted: TicketFilter, offset: int, limit: int, after: TicketPlace | None = None) -> TicketPage:
        """List tickets as records, those of the newest plan first."""
        if wanted.plan_id is not None:
            records = await self._records(await self._plans.run_of(wanted.plan_id))
            found = [one for one in records if wanted.takes(one)]
            return TicketPage(found[offset : offset + limit], len(found))
        return await self._of_all(wanted, offset, limit, after)

    async def _of_all(self, wanted: TicketFilter, offset: int, limit: int, after: TicketPlace | None) -> TicketPage:
        found: list[Record] = []
        skip, seen, last = offset, 0, after
        before = None if after is None else after.run + 1
        while True:
            plans = await self._store.find(Query(tipo=TIPO, before_run=before, limit=PAGE_PLANS))
            for plan in plans:
                records = await self._records(plan.run)
                first = after.position + 1 if after is not None and plan.run == after.run else 0
                for position in range(first, len(records)):
                    if not wanted.takes(records[position]):
                        continue
                    if skip:
                        skip -= 1
                    elif len(found) == limit:
                        return TicketPage(found, None, last)
                    else:
                        found.append(records[position])
                    last = TicketPlace(plan.run, position)
                seen += 1
                if seen == LISTED_PLANS_MAX:
                    return TicketPage(found, None, TicketPlace(plan.run, len(records)))
            if len(plans) < PAGE_PLANS:
                return TicketPage(found, offset - skip + len(found) if after is None else None)
            before = plans[-1].run

    async def _records(self, run: int) -> list[Record]:
        state = await self._state_of(run)
        return await self._compensated([execution_ticket(state, at, self._now()) for at in range(len(state.tickets))])

    async def record(self, ticket: str) -> Record:
        """A ticket as a record. UnknownIdError: there is none, or it is of no plan of Fluxo C."""
        state, position = await self.find(ticket)
        return (await self._compensated([execution_ticket(state, position, self._now())]))[0]

    async def find(self, ticket: str) -> tuple[Orchestration, int]:
        """The orchestration of a ticket, and where it stands in it."""
        found = parse_ticket_id(ticket)
        if found is None:
            raise UnknownIdError("ticket", ticket)
        try:
            state = await self._state_of(found[0])
        except UnknownIdError:
            raise UnknownIdError("ticket", ticket) from None
        if found[1] >= len(state.tickets) or flow_in(state.plan) is None:
            raise UnknownIdError("ticket", ticket)
        return state, found[1]

    async def _compensated(self, records: Sequence[Record]) -> list[Record]:
        """The same with what became of tickets that were compensated on request."""
        keys = {key_of(compensation_plan_id(one["ticket_id"])): one for one in records}
        for key, kept in (await self._store.keyed(list(keys))).items():
            state = await self._state_of(kept.run)
            done = execution_ticket(state, 0, self._now())
            keys[key]["compensation_ticket_id"] = done["ticket_id"]
            if done["status"] == TicketStatus.COMPLETED:
                keys[key]["status"] = TicketStatus.COMPENSATED.value
            elif state.closed_at is None:
                keys[key]["status"] = TicketStatus.COMPENSATING.value
        return list(records)

    # -- commands ----------------------------------------------------------------------------------------------------

    async def bring(self, asked: TicketRequest, actor: Actor, traceparent: str | None = None) -> tuple[Record, bool]:
        """Start a ticket that came alone: its record, and whether it is new. The same ticket again, by its idempotency
        key or its `ticket_id`, is the one that there is; with another content DuplicateCorrelationError."""
        key = asked.idempotency_key
        name = key or new_correlation_id()
        plan_id = f"{asked.plan_id}.{name}"[:128] if asked.plan_id else f"{TICKET_PREFIX}{name}"[:128]
        within = None if asked.sla.deadline is None else asked.sla.deadline - self._now()
        if within is not None and within.total_seconds() <= 0:
            raise WireError("invalid_plan", "sla.deadline has passed")
        document = plan_of_ticket(asked, plan_id, key)
        taken = await self._plans.accept(
            {name: value for name, value in document.items() if value is not None},
            actor=actor,
            within=within,
            notify=NoticeTargets(),
            traceparent=traceparent,
        )
        return await self._only(taken), taken.new

    async def compensate(self, asked: CompensationRequest, actor: Actor) -> tuple[Record, bool]:
        """Start what compensates a ticket, once: the record of that, and whether it is new. TicketStatusError: the
        ticket is not one that was begun."""
        state, position = await self.find(asked.original_ticket_id)
        original = execution_ticket(state, position, self._now())
        if original["status"] not in COMPENSABLE:
            allowed = ", ".join(COMPENSABLE)
            raise TicketStatusError(asked.original_ticket_id, f"it is {original['status']}, and not {allowed}")
        task = state.plan.tasks[position]
        topic = task.name == original["task_type"].lower()
        plan = plan_of_compensation(asked, original, None if topic else task.name)
        taken = await self._plans.accept(plan, actor=actor)
        return await self._only(taken), taken.new

    async def _only(self, taken: Taken) -> Record:
        state = await self._state_of(taken.run)
        return execution_ticket(state, 0, self._now())


def open_attempt(state: Orchestration, position: int) -> int:
    """The attempt of a ticket that its worker answers now. TicketStatusError: no attempt is open."""
    ticket = state.tickets[position]
    if ticket.status.final or not ticket.attempt:
        status = execution_ticket(state, position, state.started_at)["status"]
        raise TicketStatusError(ticket_id(state.run, position), f"it is {status}: no answer is expected")
    return ticket.attempt
