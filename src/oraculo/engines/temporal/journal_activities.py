"""What the activities of workflows do: write steps to the journal, send the orders that are owed, read the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog

from oraculo.core.commands import ConfirmDispatch, Grow, RecordResult
from oraculo.core.effects import Begin, Publish, owed_effects
from oraculo.core.events import CompensationStarted, DispatchConfirmed, Event, PlanGrown
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.engines.temporal import journal_pages
from oraculo.engines.temporal.commands import LocalCommand, ProjectSteps
from oraculo.engines.temporal.effects import IdempotentEffectRunner
from oraculo.engines.temporal.messages import ConfirmedOrders, StepReport
from oraculo.errors import StoreUnavailableError, WireError
from oraculo.ports.clock import Clock
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.ports.work import Work
from oraculo.runtime.consumer import quarantined
from oraculo.runtime.evaluation import evaluate, snapshot
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.states import States
from oraculo.runtime.token_ring import TokenRing
from oraculo.wire import names
from oraculo.wire.ticket_tokens import UNAUTHENTICATED

log = structlog.get_logger("oraculo.temporal")

CONFIRM_TIMEOUT_S = 1.0  # that a workflow waits for the broker; what is confirmed later comes as a signal
NEVER_ACCEPTED_AFTER = timedelta(minutes=2)  # a workflow without a journal belongs to a request that was not accepted


class JournalActivities:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        queue: CommandQueue,
        states: States,
        effects: IdempotentEffectRunner,
        tokens: TokenRing | None = None,
        *,
        by_hand: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queue = queue
        self._states = states
        self._effects = effects
        self._tokens = tokens
        self._by_hand = by_hand  # answers without a signature may count

    async def carry_out(self, report: StepReport) -> ConfirmedOrders | None:
        """Return when the steps are in the journal, and what they owe is on its way, with what a broker has confirmed
        of it. Asked again for the same, it finds what it did."""
        with self._effects.watched(report.run):
            return await self._carry_out(report)

    async def _carry_out(self, report: StepReport) -> ConfirmedOrders | None:
        await self._fill_rows(report)
        projected = ProjectSteps(report)
        await self._queue.submit([Work(projected, run=report.run)])
        if projected.missing:
            raise StoreUnavailableError(f"the journal of {report.run} lacks steps that its workflow has made")
        if len(projected.news) < len(report.steps):
            await self._compare(report)
        for done in projected.news:
            self._effects.recorded(report.run, done.events)
        return await self._send_orders(report) if report.orders else None

    async def _fill_rows(self, report: StepReport) -> None:
        """Give the maps and loops that a workflow let grow their rows: what it was told had none. They are evaluated
        again, which gives the same, all rows of a map at once."""
        grown = [(first, one) for first, _at, events in report.steps for one in events if isinstance(one, PlanGrown)]
        state = await self._states.state(report.run) if grown else None
        missing = [one for first, one in grown if state is not None and first > state.version]
        asked = snapshot(state) if missing and state is not None else None
        if asked is None:
            return
        rows: dict[int, list[tuple[bytes, ...]]] = {}
        templates: dict[int, list[str] | None] = {}
        firsts: dict[int, int] = {}  # the number of the first row of each; of a round: how many came before it
        for command in await asyncio.to_thread(evaluate, asked):
            if isinstance(command, Grow):
                rows.setdefault(command.owner, []).extend(command.rows)
                templates.setdefault(command.owner, command.template)
                firsts.setdefault(command.owner, command.offset)
        for one in missing:
            found, before = rows.get(one.owner, []), firsts.get(one.owner, 0)
            one.rows = found[one.offset - before : one.offset - before + one.count]
            one.template = templates.get(one.owner) if one.offset == 0 else None
            if len(one.rows) != one.count:
                raise StoreUnavailableError(f"what tasks of {report.run} grew by is not what its workflow was told")

    async def _compare(self, report: StepReport) -> None:
        """What another try has written must be the same: what a workflow makes follows from its history alone."""
        first = report.steps[0][0]
        recorded = await self._store.events(report.run, first - 1, len(report.steps))
        written = [(one.first, one.at, _comparable(one.events)) for one in recorded]
        if written != [(first, at, _comparable(events)) for first, at, events in report.steps]:
            log.error("a workflow made something else than the journal has", run=report.run, first=first)
            raise StoreUnavailableError(f"the journal of {report.run} is not what its workflow made")

    async def _send_orders(self, report: StepReport) -> ConfirmedOrders | None:
        state = self._states.cache.get(report.run) or await self._states.state(report.run)
        if state is None:
            return None
        if state.version > report.version:  # another try came further
            later = await self._store.events(report.run, report.version, 1)
            return _confirmed(later[0])
        owed = owed_effects(state)
        self._effects.take(state, owed)
        orders = [order for effect in owed if isinstance(effect, Publish | Begin) for order in effect.tickets]
        confirmed = await self._effects.wait_confirmed(report.run, orders, CONFIRM_TIMEOUT_S)
        if not confirmed:
            return None
        local = LocalCommand(ConfirmDispatch(confirmed), since=report.at)
        await self._queue.submit([Work(local, run=report.run)])
        if local.recorded is None:
            return None
        found = _confirmed(local.recorded)
        if found is not None:
            self._effects.recorded(report.run, local.recorded.events)
        return found

    async def judge_by_hand(
        self, correlation_id: str, ticket: str, token: str | None, body: str
    ) -> dict[str, int | bool | None]:
        """Judge an answer by hand by its token; one that may not count is a dead letter when this returns."""
        answer = RecordResult(True, b"null", [], ticket=ticket)
        try:
            if not self._by_hand:
                raise WireError(UNAUTHENTICATED, "answers have to be signed; send it to a queue, or over HTTP")
            if self._tokens is not None:
                self._tokens.judge(answer, local_name(correlation_id), token)
        except WireError as error:
            queue = in_tenant(tenant_of(correlation_id), names.RESULTS)
            await self._queue.submit([quarantined(body.encode(), queue, error, correlation_id)])
            return {"counts": False, "attempt": None}
        return {"counts": True, "attempt": answer.attempt}

    async def recall(self, run: int, after: int, version: int, asked_at: datetime) -> dict[str, Any] | None:
        """Return a page of the journal, None when the request was never accepted."""
        found = await journal_pages.page(self._store, run, after, version)
        if found is None and self._clock.now() - asked_at < NEVER_ACCEPTED_AFTER:
            raise StoreUnavailableError(f"the journal of {run} is not there yet")
        return found


def _comparable(events: Sequence[Event]) -> list[Event]:
    """Leave out what the journal has and a workflow has not: rows of maps and, where it began anew, parameters of what
    undoes tasks."""
    return [
        journal_pages.lean(event) if isinstance(event, CompensationStarted | PlanGrown) else event for event in events
    ]


def _confirmed(recorded: Recorded) -> ConfirmedOrders | None:
    """Return what this step confirms, None when it is no confirmation."""
    event = recorded.events[0]
    return ConfirmedOrders(event.tickets, recorded.at) if isinstance(event, DispatchConfirmed) else None
