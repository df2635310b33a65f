"""The ceiling of a whole fleet, fed by the journal: one process at a time says which tickets may go, of all plans whose
profile has a ceiling.

Any process may step any plan, so none of them knows what the others have with workers; the journal does. The process
whose duty it is reads it, keeps the plans that are open in memory, and hands on what the ceiling lets out. That is
written down first, in the note of the duty: so its successor counts what was let out and is not confirmed yet, whether
or not it ever arrived; and a process that was paused and replaced lets nothing out any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import orjson
import structlog

from oraculo.core.effects import Publish, owed_orders
from oraculo.core.events import DispatchConfirmed, OrchestrationStarted, PriorityChanged
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.core.step import react
from oraculo.errors import StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.journal import Recorded
from oraculo.ports.store import SharedStore
from oraculo.runtime.flow.open_plans import open_limited
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling, Order, score_of

log = structlog.get_logger("oraculo.ceiling")

DUTY = "fluxo_c_ceiling"  # as it is written in databases
JOURNAL_PAGE_STEPS = 256
POLL_MAX_S = 0.5  # between two looks
POLL_MIN_S = 0.02
POLL_MIN_NO_PLANS_S = 0.1  # the same, while no plan is open
RESCORE_INTERVAL_S = 1.0  # between two looks at how long something waits
LOST_AFTER = timedelta(seconds=30)  # owed for so long after it was handed on: it seems to be lost
NEVER = float("-inf")


class OrderSender(Protocol):
    """Sends the orders that the ceiling lets out."""

    @property
    def failing_since(self) -> datetime | None:
        """Since when nothing can be sent."""
        ...

    def order(self, state: Orchestration, tickets: Iterable[tuple[int, int]]) -> None:
        """Send the orders of these (position, attempt). Returns at once."""
        ...


class JournalCeiling:
    """Lets orders out to `sender`, in the process whose duty it is. What was let out and is owed for longer than
    `lost_after` is sent again."""

    def __init__(
        self, store: SharedStore, clock: Clock, sender: OrderSender, limit: int, lost_after: timedelta = LOST_AFTER
    ) -> None:
        self._store = store
        self._clock = clock
        self._sender = sender
        self._limit = limit
        self._lost_after_s = lost_after.total_seconds()
        self._heard: int | None = None  # of what others write
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.active = False
        self._ceiling: ConcurrencyCeiling[Order] = ConcurrencyCeiling(self._limit)
        self._states: dict[int, Orchestration] = {}  # plans that have not ended
        self._sent: dict[Order, float] = {}  # let out, and owed when we looked last → when it was handed on
        self._note = ""  # as this process wrote or found it last
        self._read = 0  # the journal, up to this position
        self._tick_at = 0.0

    @property
    def held_back(self) -> int:
        """Tickets that wait for room, in the process whose duty it is."""
        return len(self._ceiling)

    async def run(self) -> None:
        self._begin_anew()
        while True:
            try:
                more = await self.round()
                if not self.active:
                    await asyncio.sleep(POLL_MAX_S)
                elif not more:
                    self._heard = await self._store.changed(POLL_MAX_S, self._heard)
                    await asyncio.sleep(POLL_MIN_S if self._states else POLL_MIN_NO_PLANS_S)
            except StoreError as error:  # away; or another process has taken over
                if self.active:
                    log.warning("ceiling given up: store unavailable, or another process has it", error=str(error))
                self._begin_anew()
                await asyncio.sleep(POLL_MAX_S)

    async def round(self) -> bool:
        """Look once, if it is the duty of this process; return whether there is more to see at once."""
        note = await self._store.claim_duty(DUTY)
        if note is None:
            self._begin_anew()
            return False
        if not self.active or note != self._note:  # another process had the duty while this one stood still
            await self._take_over(note)
        more = await self._read_on()
        now = asyncio.get_running_loop().time()
        if now >= self._tick_at:
            self._tick_at = now + RESCORE_INTERVAL_S
            self._ceiling.rescore(self._wanted)
            self._send_again(now)
        await self._let_out(now)
        return more

    # -- what there is -----------------------------------------------------------------------------------------------

    async def _take_over(self, note: str) -> None:
        """Count what is running, and what was let out as long as it is owed: the latter is sent again at once."""
        self._begin_anew()
        self._note = note
        self._read = (await self._store.lag(0)).end
        async for state in open_limited(self._store):
            self._states[state.run] = state
        noted = {tuple(order) for order in orjson.loads(note or "[]")}
        for run in sorted(self._states):
            state = self._states[run]
            self._ceiling.with_workers(state)
            for position, attempt in _messages(state, owed_orders(state)):
                order = (run, position, attempt)
                if order in noted:
                    self._ceiling.let_out(order)
                    self._sent[order] = NEVER
                else:
                    self._wait(state, order)
        self.active = True
        log.info("ceiling taken over", plans=len(self._states), waiting=len(self._ceiling))

    async def _read_on(self) -> bool:
        end = (await self._store.lag(self._read)).end
        steps = await self._store.tail(self._read, JOURNAL_PAGE_STEPS, limited=True) if end > self._read else []
        for step in steps:
            self._follow(step)
            self._read = step.position
        if len(steps) == JOURNAL_PAGE_STEPS:
            return True
        self._read = max(end, self._read)  # what is between has no ceiling
        return False

    def _follow(self, step: Recorded) -> None:
        state = self._states.get(step.run)
        if step.erased or (state is None and not isinstance(step.events[0], OrchestrationStarted)):
            return  # it had ended when we took over
        if state is not None and step.first <= state.version:
            return  # it was loaded with this step
        if isinstance(step.events[0], OrchestrationStarted) and not step.events[0].plan.profile.has_ceiling:
            return
        self._states[step.run] = state = rebuild([step], state)
        for effect in react(step.events, state):
            if isinstance(effect, Publish):
                self._owe(state, _messages(state, effect.tickets))
        for event in step.events:
            if isinstance(event, DispatchConfirmed):  # also what another process has sent
                for position, attempt in _messages(state, event.tickets):
                    self._ceiling.let_out((step.run, position, attempt))
            elif isinstance(event, PriorityChanged):
                self._tick_at = 0.0  # order what waits anew
        self._ceiling.settle(state)
        if state.closed_at is not None:
            del self._states[step.run]

    def _owe(self, state: Orchestration, tickets: Sequence[tuple[int, int]]) -> None:
        """Keep these orders until there is room. One that was handed on before a pause is handed on again."""
        for position, attempt in tickets:
            order = (state.run, position, attempt)
            if order in self._sent:
                self._sent[order] = NEVER
            elif not self._ceiling.holds(*order):
                self._wait(state, order)

    def _wait(self, state: Orchestration, order: Order) -> None:
        _, position, attempt = order
        since = state.tickets[position].dispatched_at if attempt == 1 else None
        self._ceiling.add(order, score_of(state, position, since or self._clock.now(), self._clock), order)

    def _wanted(self, order: Order) -> bool:
        return self._owed(order) and self._states[order[0]].paused is None

    def _owed(self, order: Order) -> bool:
        """Return whether it is not confirmed; while its run is paused, a worker may have it all the same."""
        run, position, attempt = order
        state = self._states.get(run)
        return state is not None and state.owes_order(position, attempt)

    # -- what may go -------------------------------------------------------------------------------------------------

    async def _let_out(self, now: float) -> None:
        due = self._ceiling.due(self._wanted)
        if due:
            self._sent = {order: at for order, at in self._sent.items() if self._owed(order)}
            self._sent |= dict.fromkeys(due, now)
            note = orjson.dumps(list(self._sent)).decode()
            await self._store.note_duty(DUTY, note)
            self._note = note
            self._hand_over(due)

    def _send_again(self, now: float) -> None:
        """Send again what seems to be lost. While nothing can be sent, more would only pile up."""
        if self._sender.failing_since is None:
            late = [order for order, at in self._sent.items() if now - at >= self._lost_after_s and self._wanted(order)]
            self._sent |= dict.fromkeys(late, now)
            self._hand_over(late)

    def _hand_over(self, orders: Sequence[Order]) -> None:
        for run, position, attempt in orders:
            self._sender.order(self._states[run], [(position, attempt)])


def _messages(state: Orchestration, orders: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of these (position, attempt) that are messages for workers: children take no place."""
    tasks = state.plan.tasks
    return [(position, attempt) for position, attempt in orders if tasks[position].kind.is_sent]
