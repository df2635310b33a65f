"""Which tickets of Fluxo C may go to workers, for a whole Celery fleet: one `oraculo up` at a time says so.

Any process may step any plan, so none of them knows what the others have with workers; the journal does. The process
whose duty it is reads it, keeps the plans that are open in memory, and hands to Celery what the ceiling lets out. That
is written down first, in the note of the duty: so its successor counts what was let out and is not confirmed yet,
whether or not it ever reached Celery; and one that was paused and replaced lets nothing out any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import orjson
import structlog

from oraculo.core.cognitive import TIPO
from oraculo.core.events import DispatchConfirmed, OrchestrationStarted, TicketsDispatched
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import Status
from oraculo.engines.celery.dispatch import FORGOTTEN, Dispatcher
from oraculo.errors import StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.sharing import SharedStore
from oraculo.ports.store import Query, Recorded
from oraculo.runtime.ceiling import Ceiling, Order, score_of

log = structlog.get_logger("oraculo.celery")

DUTY = "fluxo_c_ceiling"
AT_ONCE = 256  # steps that are read together
PLANS_AT_ONCE = 100  # that are loaded together
POLL = 0.5  # seconds at most between two looks
GATHER = 0.02  # seconds at least
NO_PLANS = 0.1  # the same, while no plan is open
TICK = 1.0  # seconds between two looks at how long something waits
NEVER = float("-inf")


class Scheduler:
    """`held_back`: tickets that wait for room, in the process whose duty it is. What was let out and is owed for longer
    than `forgotten` is handed to Celery again."""

    def __init__(
        self, store: SharedStore, clock: Clock, dispatcher: Dispatcher, limit: int, forgotten: timedelta = FORGOTTEN
    ) -> None:
        self._store = store
        self._clock = clock
        self._dispatcher = dispatcher
        self._limit = limit
        self._forgotten = forgotten.total_seconds()
        self._heard: int | None = None  # of what others write
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.active = False
        self._ceiling: Ceiling[Order] = Ceiling(self._limit)
        self._states: dict[int, Orchestration] = {}  # plans that have not ended
        self._sent: dict[Order, float] = {}  # let out, and owed when we looked last → when Celery got it
        self._read = 0  # the journal, up to this position
        self._tick_at = 0.0

    @property
    def held_back(self) -> int:
        return len(self._ceiling)

    async def run(self) -> None:
        self._begin_anew()
        while True:
            try:
                more = await self.round()
                if not self.active:
                    await asyncio.sleep(POLL)
                elif not more:
                    self._heard = await self._store.changed(POLL, self._heard)
                    await asyncio.sleep(GATHER if self._states else NO_PLANS)
            except StoreError as error:  # away; or another process has taken over
                if self.active:
                    log.warning("tickets of Fluxo C wait for somebody to schedule them", error=str(error))
                self._begin_anew()
                await asyncio.sleep(POLL)

    async def round(self) -> bool:
        """One look, if it is the duty of this process; whether there is more to see at once."""
        note = await self._store.claim_duty(DUTY)
        if note is None:
            self._begin_anew()
            return False
        if not self.active:
            await self._take_over(note)
        more = await self._read_on()
        now = asyncio.get_running_loop().time()
        if now >= self._tick_at:
            self._tick_at = now + TICK
            self._ceiling.rescore(self._wanted)
            self._send_again(now)
        await self._let_out(now)
        return more

    # -- what there is -----------------------------------------------------------------------------------------------

    async def _take_over(self, note: str) -> None:
        """What is running is with workers. So is what was let out, as long as it is owed: it is sent again at once."""
        self._begin_anew()
        self._read = (await self._store.lag(0)).steps
        query = Query(status=(Status.PENDENTE, Status.EM_EXECUCAO), tipo=TIPO, limit=PLANS_AT_ONCE)
        while found := await self._store.find(query):
            for run, recorded in (await self._store.load([one.run for one in found])).items():
                self._states[run] = fold((one.at, one.events) for one in recorded)
            query.before_run = found[-1].run
        noted = {tuple(order) for order in orjson.loads(note or "[]")}
        for run in sorted(self._states):
            state = self._states[run]
            self._ceiling.with_workers(state)
            for position in sorted(state.owed):
                order = (run, position, state.tickets[position].attempt)
                if order in noted:
                    self._ceiling.let_out(order)
                    self._sent[order] = NEVER
                else:
                    self._wait(state, order)
        self.active = True
        log.info("schedules the tickets of Fluxo C", plans=len(self._states), waiting=len(self._ceiling))

    async def _read_on(self) -> bool:
        end = self._read + (await self._store.lag(self._read)).steps
        steps = await self._store.tail(self._read, AT_ONCE, TIPO) if end > self._read else []
        for step in steps:
            self._follow(step)
            self._read = step.position
        if len(steps) == AT_ONCE:
            return True
        self._read = max(end, self._read)  # what is between is not about plans
        return False

    def _follow(self, step: Recorded) -> None:
        state = self._states.get(step.run)
        if state is None and not isinstance(step.events[0], OrchestrationStarted):
            return  # it had ended when we took over
        if state is not None and step.first <= state.version:
            return  # it was loaded with this step
        self._states[step.run] = state = fold([(step.at, step.events)], state)
        for event in step.events:
            if isinstance(event, TicketsDispatched):
                for position in event.tickets:
                    self._wait(state, (step.run, position, event.attempt))
            elif isinstance(event, DispatchConfirmed):  # also what somebody else has sent
                for position, attempt in event.tickets:
                    self._ceiling.let_out((step.run, position, attempt))
        self._ceiling.settle(state)
        if state.closed_at is not None:
            del self._states[step.run]

    def _wait(self, state: Orchestration, order: Order) -> None:
        _, position, attempt = order
        since = state.tickets[position].dispatched_at if attempt == 1 else None
        self._ceiling.add(order, score_of(state, position, since or self._clock.now(), self._clock), order)

    def _wanted(self, order: Order) -> bool:
        run, position, attempt = order
        state = self._states.get(run)
        return state is not None and position in state.owed and state.tickets[position].attempt == attempt

    # -- what may go -------------------------------------------------------------------------------------------------

    async def _let_out(self, now: float) -> None:
        due = self._ceiling.due(self._wanted)
        if due:
            self._sent = {order: at for order, at in self._sent.items() if self._wanted(order)}
            self._sent |= dict.fromkeys(due, now)
            await self._store.note_duty(DUTY, orjson.dumps(list(self._sent)).decode())
            self._hand_over(due)

    def _send_again(self, now: float) -> None:
        """Celery's broker may lose a task. While it takes none, more of them would only pile up."""
        if self._dispatcher.failing_since is None:
            late = [order for order, at in self._sent.items() if now - at >= self._forgotten and self._wanted(order)]
            self._sent |= dict.fromkeys(late, now)
            self._hand_over(late)

    def _hand_over(self, orders: Sequence[Order]) -> None:
        for run, position, attempt in orders:
            self._dispatcher.order(self._states[run], [(position, attempt)])
