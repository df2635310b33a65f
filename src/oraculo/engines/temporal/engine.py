"""The engine of a process among Temporal workflows: requests become workflows, answers become signals, and what the
workflows make true is written to the journal and done.

It is the local engine with another way to decide. What a request may be, the transaction that many share, the broker,
leases, the feed and the metrics are the same; steps come from workflows, and there is no timer of its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import structlog
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from oraculo.core.commands import Approve, Cancel, ConfirmDispatch
from oraculo.core.effects import Publish, owed_effects
from oraculo.core.state import Orchestration
from oraculo.engines.local import LocalEngine
from oraculo.engines.temporal import calls, recall
from oraculo.engines.temporal.activities import activities_of
from oraculo.engines.temporal.calls import Known
from oraculo.engines.temporal.handler import Launch, Own, ProjectingHandler, Projection, confirmation, is_for_workflow
from oraculo.engines.temporal.link import Address, Link
from oraculo.engines.temporal.parcels import Begin, Confirmed, Made, pack_command, pack_unit, wrap
from oraculo.engines.temporal.perform import OncePerformer
from oraculo.errors import EngineUnavailableError, StoreError, StoreUnavailableError
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.sharing import sharing
from oraculo.ports.store import Store
from oraculo.runtime.loops import for_ever
from oraculo.runtime.work import Fate, Outcome, Work

if TYPE_CHECKING:
    from oraculo.engines.temporal.tracing import Tracing

log = structlog.get_logger("oraculo.temporal")

PATIENCE = 1.0  # seconds that a workflow waits for the broker; what is confirmed later comes as a signal
CALLS = 100  # at once
KNOWN = 50_000  # orchestrations whose workflow is remembered
RETRY_FIRST, RETRY_MOST = 0.1, 2.0
OVERDUE, AT_MOST = timedelta(minutes=1), 500
GIVEN_UP = timedelta(minutes=2)  # a workflow without a journal belongs to a request that was never accepted
ASKED = (Cancel, Approve)  # whoever sends one wants to know what became of it


class TemporalEngine(LocalEngine):
    minds = False  # the workflows do
    grace = None
    performs = OncePerformer
    performer: OncePerformer

    def __init__(
        self,
        store: Store,
        broker: Broker,
        clock: Clock,
        *,
        address: Address,
        tracing: Tracing | None = None,
        **options: Any,
    ) -> None:
        super().__init__(store, broker, clock, **options)
        self.link = Link(address, clock, activities_of(self), options.get("name", "oraculo"), tracing)
        self._gate = asyncio.Semaphore(CALLS)
        self._known: OrderedDict[int, Known] = OrderedDict()  # by run
        self._forward: list[Work] = []  # for workflows; nobody waits for them
        self._forwards = asyncio.Event()

    def _make_handler(self) -> ProjectingHandler:
        return ProjectingHandler(self.store, self.clock, self._launch)

    async def start(self) -> Self:
        await super().start()
        link = partial(self.link.run, works=not self._passive)
        self._tasks.append(asyncio.create_task(for_ever(link), name="temporal"))
        self._tasks.append(asyncio.create_task(for_ever(self._forward_loop), name="forward"))
        if not self._passive:
            self._tasks.append(asyncio.create_task(for_ever(self._look_after), name="look after"))
        return self

    async def stop(self, patience: float = 20.0) -> None:
        self.ready = False
        await self.link.stop_working()
        await super().stop(patience)

    @property
    def failing(self) -> dict[str, Any] | None:
        since = self.link.failing_since
        return None if since is None else {"temporal": self.link.address.target, "failing_since": since}

    # -- a request becomes a workflow --------------------------------------------------------------------------------

    async def _launch(self, launches: Sequence[Launch]) -> dict[int, EngineUnavailableError]:
        """Begin them all; the runs that could not begin, and why."""
        found = await asyncio.gather(*(self._begin(one) for one in launches))
        return {one.state.run: error for one, error in zip(launches, found, strict=True) if error is not None}

    async def _begin(self, launch: Launch) -> EngineUnavailableError | None:
        """A plan that is too large to travel is read from the journal. One that does not find it there was never
        accepted, and gives way."""
        state = launch.state
        key = None if launch.key is None else (launch.key.key, launch.key.fingerprint)
        begin = Begin(state.run, launch.at, launch.started, 0, key, self.link.marked)
        conflict = WorkflowIDConflictPolicy.FAIL
        if not calls.fits(begin.pack()):
            begin.started, begin.version = None, state.version
            conflict = WorkflowIDConflictPolicy.TERMINATE_EXISTING
        try:
            await self._start_workflow(state, begin, conflict)
        except WorkflowAlreadyStartedError:
            return EngineUnavailableError(f"{state.correlation_id!r} is being started by somebody else")
        except EngineUnavailableError as error:
            return error
        except RPCError as error:
            log.error("Temporal refused a workflow", correlation_id=state.correlation_id, error=str(error))
            return EngineUnavailableError(f"Temporal refused: {error.message}")
        return None

    async def _start_workflow(self, state: Orchestration, begin: Begin, conflict: WorkflowIDConflictPolicy) -> None:
        queue, here = self.link.address.task_queue, not self._passive
        known = self._remember(state)
        call = partial(calls.begin, state, begin, queue, here=here, conflict=conflict)
        async with self._gate:
            await self.link.call(call, known.traceparent)

    def _remember(self, state: Orchestration) -> Known:
        known = self._known[state.run] = calls.known(state)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return known

    # -- an answer becomes a signal ----------------------------------------------------------------------------------

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        """Durable when it returns: in the history of its workflow, or in the journal. What becomes of an answer is
        known when the workflow has read it, so here it counts as applied."""
        theirs = [work for work in works if is_for_workflow(work)]
        if not theirs:
            return await super().submit(works, piecewise=piecewise)
        outcomes = dict(zip(map(id, theirs), await self._tell(theirs), strict=True))
        ours = [work for work in works if id(work) not in outcomes]
        outcomes |= zip(map(id, ours), await super().submit(ours, piecewise=piecewise), strict=True)
        found = [outcomes[id(work)] for work in works]
        if not piecewise and any(outcome.fate is Fate.RETRY for outcome in found):
            raise StoreUnavailableError("an orchestration is between two states; try again")
        return found

    def enqueue(self, works: Sequence[Work]) -> None:
        theirs = [work for work in works if is_for_workflow(work)]
        super().enqueue(works if not theirs else [work for work in works if not is_for_workflow(work)])
        if theirs:
            self._forward += theirs
            self._forwards.set()

    async def _forward_loop(self) -> None:
        """Confirmations and outcomes of notices are nobody else's to send again."""
        pause = RETRY_FIRST
        while True:
            await self._forwards.wait()
            self._forwards.clear()
            works, self._forward = self._forward, []
            groups = list(_groups(works).values())
            found = await asyncio.gather(
                *(self._tell_one(group[0].run, group) for group in groups), return_exceptions=True
            )
            failed = [(group, error) for group, error in zip(groups, found, strict=True) if not isinstance(error, list)]
            if not failed:
                pause = RETRY_FIRST
                continue
            log.warning("workflows cannot be told now", orchestrations=len(failed), error=str(failed[0][1]))
            self._forward[:0] = [work for group, _ in failed for work in group]
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_MOST)
            self._forwards.set()

    async def _tell(self, works: Sequence[Work]) -> list[Outcome]:
        """Each to its workflow; what belongs to none is dealt with as without workflows."""
        await self._locate(works)
        told = await asyncio.gather(*(self._tell_one(group[0].run, group) for group in _groups(works).values()))
        outcomes = {id(work): outcome for found in told for work, outcome in found}
        return [outcomes[id(work)] for work in works]

    async def _locate(self, works: Sequence[Work]) -> None:
        run_of = self.handler.cache.run_of
        for work in works:
            work.run = work.run or run_of(work.correlation_id) or 0
        names = sorted({work.correlation_id for work in works if not work.run})
        if names:
            found = await self.store.locate(names)
            for work in works:
                work.run = work.run or found.get(work.correlation_id, 0)

    async def _tell_one(self, run: int, works: Sequence[Work]) -> list[tuple[Work, Outcome]]:
        known = await self._workflow_of(run) if run else None
        if known is not None:
            for last in (False, True):
                try:
                    return await self._send(known, run, works)
                except RPCError as error:
                    if error.status is not RPCStatusCode.NOT_FOUND:
                        raise EngineUnavailableError(f"Temporal refused: {error.message}") from error
                state = await self.handler.state(run)
                if last or state is None or _finished(state):
                    break
                await self._revive(state)
        own = [_own(work) for work in works]
        outcomes = await super().submit(list(own), piecewise=True)
        return list(zip(works, outcomes, strict=True))

    async def _workflow_of(self, run: int) -> Known | None:
        known = self._known.get(run)
        if known is not None:
            return known
        state = self.handler.cache.get(run) or await self.handler.state(run)
        return None if state is None else self._remember(state)

    async def _send(self, known: Known, run: int, works: Sequence[Work]) -> list[tuple[Work, Outcome]]:
        identity, trace = known
        applied = Outcome(Fate.APPLIED, Fate.APPLIED, run)
        command = works[0].command if works else None
        async with self._gate:
            if isinstance(command, ASKED):
                verdict = await self.link.call(partial(calls.ask, identity, wrap(pack_command(command))), trace)
                return [(works[0], Outcome(Fate(verdict), verdict, run))]
            for parcel in calls.parcels(works):
                await self.link.call(partial(calls.signal, identity, pack_unit(parcel, self.clock.now())), trace)
        return [(work, applied) for work in works]

    async def _revive(self, state: Orchestration) -> None:
        """Its workflow is gone although it has not ended: Temporal lost it, or somebody terminated it. The journal
        knows where it stood."""
        log.warning("a workflow is gone and begins anew from the journal", correlation_id=state.correlation_id)
        begin = Begin(state.run, self.clock.now(), version=state.version, marked=self.link.marked)
        await self._start_workflow(state, begin, WorkflowIDConflictPolicy.USE_EXISTING)

    async def _look_after(self) -> None:
        """Whoever should have been woken long ago may have no workflow any more: knock, and see."""
        while True:
            try:
                for run in await self._overdue():
                    await self._tell_one(run, ())
            except StoreError as error:
                log.debug("cannot look after the overdue now", error=str(error))
            await asyncio.sleep(OVERDUE.total_seconds())

    async def _overdue(self) -> list[int]:
        shared = sharing(self.store)
        if shared is not None:
            return await shared.overdue(OVERDUE, AT_MOST)
        before = self.clock.now() - OVERDUE
        return [one.run for one in await self.store.live() if one.wake_at is not None and one.wake_at < before]

    async def state_of(self, correlation_id: str) -> Orchestration | None:
        run = self.handler.cache.run_of(correlation_id)
        if run is None:
            run = (await self.store.locate([correlation_id])).get(correlation_id)
        return None if run is None else await self.handler.state(run)

    # -- what workflows ask for --------------------------------------------------------------------------------------

    async def carry_out(self, made: Made) -> Confirmed | None:
        """In the journal, and on its way, when it returns. Asked again for the same, it finds what it did."""
        with self.performer.watched(made.run):
            return await self._carry_out(made)

    async def _carry_out(self, made: Made) -> Confirmed | None:
        work = Projection(run=made.run, made=made)
        await super().submit([work])
        if work.missing:
            raise StoreUnavailableError(f"the journal of {made.run} lacks steps that its workflow has made")
        if len(work.news) < len(made.steps):
            await self._compare(made)
        for done in work.news:
            self.performer.recorded(made.run, done.events)
        return await self._send_orders(made) if made.orders else None

    async def _compare(self, made: Made) -> None:
        """What another try has written must be the same: what a workflow makes follows from its history alone."""
        first = made.steps[0][0]
        recorded = await self.store.events(made.run, first - 1, len(made.steps))
        if [(one.first, one.at, one.events) for one in recorded] != made.steps:
            log.error("a workflow made something else than the journal has", run=made.run, first=first)
            raise StoreUnavailableError(f"the journal of {made.run} is not what its workflow made")

    async def _send_orders(self, made: Made) -> Confirmed | None:
        state = self.handler.cache.get(made.run) or await self.handler.state(made.run)
        if state is None:
            return None
        if state.version > made.version:  # another try came further
            later = await self.store.events(made.run, made.version, 1)
            event = confirmation(later[0])
            return None if event is None else Confirmed(event.tickets, later[0].at)
        owed = owed_effects(state)
        self.performer.take(state, owed)
        orders = [order for effect in owed if isinstance(effect, Publish) for order in effect.tickets]
        confirmed = await self.performer.settled(made.run, orders, PATIENCE)
        if not confirmed:
            return None
        own = Own(ConfirmDispatch(confirmed), run=made.run, since=made.at)
        await super().submit([own])
        event = confirmation(own.recorded)
        if event is None or own.recorded is None:
            return None
        self.performer.recorded(made.run, [event])
        return Confirmed(event.tickets, own.recorded.at)

    async def recall(self, run: int, after: int, version: int, asked_at: datetime) -> dict[str, Any] | None:
        found = await recall.page(self.store, run, after, version)
        if found is None and self.clock.now() - asked_at < GIVEN_UP:
            raise StoreUnavailableError(f"the journal of {run} is not there yet")
        return found


def _groups(works: Sequence[Work]) -> dict[int, list[Work]]:
    """What one workflow is told at once; whoever wants to know what becomes of a command tells it alone."""
    groups: dict[int, list[Work]] = {}
    for work in works:
        groups.setdefault(-id(work) if isinstance(work.command, ASKED) else work.run, []).append(work)
    return groups


def _own(work: Work) -> Own:
    own = Own(**{one.name: getattr(work, one.name) for one in fields(Work)})
    own.group = None
    return own


def _finished(state: Orchestration) -> bool:
    return state.closed_at is not None and not state.owes and state.wake_at() is None
