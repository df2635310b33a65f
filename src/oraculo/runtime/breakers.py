"""Breakers of destinations: fed by the journal, kept in the store, asked by every process that sends orders.

One process at a time reads the journal for them (a projection, with a cursor of its own), so that failures are counted
in the order of commits, whichever process saw them, and over restarts. All processes look at the store every second. A
probe is claimed there, so that one goes out, whichever process has the orders that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from oraculo.core import sentences
from oraculo.core.access import Actor
from oraculo.core.breaking import (
    BreakerRules,
    DestinationBreaker,
    Order,
    OrderSign,
    Sign,
    due_now,
    heard,
    probing,
)
from oraculo.core.events import (
    AttemptFailed,
    DispatchConfirmed,
    Event,
    TicketConcluded,
    TicketFailed,
    TicketsClosed,
)
from oraculo.core.reasons import MESSAGE_REFUSED
from oraculo.core.state import Orchestration
from oraculo.core.tenants import tenant_of
from oraculo.errors import StoreError
from oraculo.ports.breakers import BREAKER_CURSOR, Breakers
from oraculo.ports.clock import Clock
from oraculo.ports.projection import Entry, Sink
from oraculo.ports.system_events import SystemEvent

log = structlog.get_logger("oraculo.breakers")

LOOK_INTERVAL_S = 1.0
OPENED_EVENT, CLOSED_EVENT = "breaker_opened", "breaker_closed"
LATELY = timedelta(minutes=10)  # failures from before that say nothing about now


class BreakerBook:
    """Knows which breakers are open, chooses probes, and opens and closes by what it is told of the journal."""

    def __init__(self, store: Breakers, clock: Clock, rules: BreakerRules) -> None:
        self.rules = rules
        self._store = store
        self._clock = clock
        self._known: dict[str, DestinationBreaker] = {}
        self._senders: list[tuple[Callable[[], None], Callable[[str], Awaitable[Order | None]]]] = []
        self.opened = 0  # since the start of this process

    # -- for senders -------------------------------------------------------------------------------------------------

    @property
    def any_known(self) -> bool:
        """False while no destination has failed yet."""
        return bool(self._known)

    def lets_through(self, queue: str, order: Order) -> bool:
        """Return whether this order may go now."""
        one = self._known.get(queue)
        return one is None or one.lets_through(order)

    def listen(self, released: Callable[[], None], candidate: Callable[[str], Awaitable[Order | None]]) -> None:
        """Call `released` when something may go that was held. `candidate` names an order of a queue that is held and
        could go out as a probe."""
        self._senders.append((released, candidate))

    # -- for operators -----------------------------------------------------------------------------------------------

    @property
    def all(self) -> list[DestinationBreaker]:
        """Those of every queue that has failed once, by queue."""
        return [one for _, one in sorted(self._known.items())]

    @property
    def open(self) -> list[DestinationBreaker]:
        """Those that are open, by queue."""
        return [one for _, one in sorted(self._known.items()) if one.is_open]

    async def probe_now(self, queue: str, actor: Actor) -> bool:
        """Let the next probe of a queue go now; False: its breaker is closed, or a probe is out already."""
        await self.refresh()
        one = self._known.get(queue)
        after = None if one is None else due_now(one, self._clock.now())
        if after is None or not await self._store.put_breaker(after):
            return False
        log.info("probe asked for", queue=queue, actor=actor.id)
        await self._look()
        return True

    # -- what the journal says ---------------------------------------------------------------------------------------

    async def tell(self, queue: str, steps: Sequence[tuple[int, datetime, list[OrderSign]]]) -> None:
        """Count steps (position, instant, signs) of the journal for a queue; durable when it returns."""
        while True:
            before = one = self._known.get(queue, DestinationBreaker(queue))
            for position, at, signs in steps:
                one = heard(one, signs, position, at, self.rules)
            if one is before or await self._write(before, one):
                return
            await self.refresh()  # another process has chosen a probe meanwhile

    async def _write(self, before: DestinationBreaker, after: DestinationBreaker) -> bool:
        opens, closes = after.is_open and not before.is_open, before.is_open and not after.is_open
        after = replace(after, version=before.version + 1)  # many steps in one write are one version
        event = None
        if opens or closes:
            body = {"fila": after.queue, "falhas": max(before.failures, after.failures), "erro": after.error}
            kind = OPENED_EVENT if opens else CLOSED_EVENT
            event = SystemEvent(kind, self._clock.now(), body, tenant=tenant_of(after.queue))
        if not await self._store.put_breaker(after, event):
            return False
        self._known[after.queue] = after
        if opens:
            self.opened += 1
            log.warning("breaker opened: orders wait", queue=after.queue, failures=after.failures, error=after.error)
        if closes:
            log.warning("breaker closed: orders go", queue=after.queue)
            self._tell_senders()
        return True

    def _tell_senders(self) -> None:
        for released, _ in self._senders:
            released()

    # -- life --------------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Read how they stand now."""
        before = self._known
        self._known = {one.queue: one for one in await self._store.breakers()}
        changed = (one for queue, one in self._known.items() if one != before.get(queue))
        if any(not one.is_open or one.probe is not None for one in changed):
            self._tell_senders()

    async def run(self) -> None:
        """Look what others have done, and send probes, for ever. While the store is away all stays as it is."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                await self._look()
            except StoreError as error:
                log.debug("breakers not read: store unavailable", error=str(error))

    async def _look(self) -> None:
        await self.refresh()
        for one in self.open:
            if one.wants_probe(self._clock.now()):
                await self._send_probe(one)

    async def _send_probe(self, one: DestinationBreaker) -> None:
        for released, candidate in self._senders:
            order = await candidate(one.queue)
            after = None if order is None else probing(one, order, self._clock.now())
            if after is None:
                continue
            if await self._store.put_breaker(after):
                self._known[one.queue] = after
                log.info("probe goes out", queue=one.queue, run=after.probe and after.probe[0])
                released()
            return


class BreakerSink(Sink):
    """Reads the journal for breakers."""

    name = BREAKER_CURSOR
    only_lately = LATELY

    def __init__(self, book: BreakerBook) -> None:
        self._book = book

    async def record(self, entries: Iterable[Entry]) -> None:
        told: dict[str, list[tuple[int, datetime, list[OrderSign]]]] = {}
        for entry in entries:
            signs: dict[str, list[OrderSign]] = {}
            for event in entry.step.events:
                for queue, said in _signs(event, entry.state):
                    signs.setdefault(queue, []).append(said)
            for queue, found in signs.items():
                told.setdefault(queue, []).append((entry.step.position, entry.step.at, found))
        if told:  # what is known may be a second old, and the answer to a probe of another process quicker than that
            await self._book.refresh()
        for queue, steps in told.items():
            await self._book.tell(queue, steps)


def _signs(event: Event, state: Orchestration) -> Iterator[tuple[str, OrderSign]]:
    """What an event says about destinations: (queue, sign)."""
    match event:
        case TicketConcluded():
            yield from _sign(state, event.ticket, event.attempt, Sign.WORKED)
        case AttemptFailed() | TicketFailed():
            error = sentences.message(sentences.errors_said(event, "en"))
            yield from _sign(state, event.ticket, event.attempt, _of_failure(event), error)
        case DispatchConfirmed():
            for position, attempt in event.tickets:
                yield from _sign(state, position, attempt, Sign.SENT)
        case TicketsClosed():
            for position in event.tickets:
                yield from _sign(state, position, state.tickets[position].attempt, Sign.VOID)


def _of_failure(event: AttemptFailed | TicketFailed) -> Sign:
    """An answer that is `definitivo` says that the request is at fault: its destination works. What no broker took
    says nothing about it."""
    if any(erro.get("codigo") == MESSAGE_REFUSED for erro in event.erros):
        return Sign.VOID
    return Sign.WORKED if isinstance(event, TicketFailed) and event.definitivo else Sign.FAILED


def _sign(
    state: Orchestration, position: int, attempt: int, sign: Sign, error: str = ""
) -> Iterator[tuple[str, OrderSign]]:
    task = state.plan.tasks[position]
    if task.kind.is_sent and attempt:
        yield task.queue, OrderSign((state.run, position, attempt), sign, task.timeout, error)
