"""Owed orders → broker, in batches, until each is confirmed, refused, or no longer owed.

Runs take turns, and messages are written when their turn comes: what waits takes no memory. A message that no broker
confirms is tried again with the same message_id; the journal remembers it meanwhile. One that waits for its queue, or
for room there, holds up no other, and one that no broker will ever take is refused at once, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from oraculo.backoff import backoff
from oraculo.errors import BrokerError
from oraculo.ports.broker import Broker, Outgoing, PublishReport
from oraculo.ports.clock import Clock
from oraculo.runtime import crash
from oraculo.runtime.effects.fair_queue import FairQueue
from oraculo.runtime.effects.owed import OwedOrder

log = structlog.get_logger("oraculo.perform")

BATCH_MAX_ORDERS = 1000
BATCH_MAX_BYTES = 16 * 1024 * 1024  # and one order more
BATCHES_IN_FLIGHT = 3  # that wait for their confirmation
PUBLISH_RETRY_FIRST_S, PUBLISH_RETRY_MAX_S = 0.05, 5.0


@dataclass(frozen=True, slots=True)
class Receivers:
    """Who is told what became of orders; `postponed` ones have to wait for their queue, or for room in it. `wanted`
    filters out orders that need not be sent any more; `write` makes the messages of orders of one run."""

    confirmed: Callable[[Sequence[OwedOrder]], None]
    refused: Callable[[OwedOrder, str], None]
    postponed: Callable[[Sequence[OwedOrder], str], None]
    wanted: Callable[[Sequence[OwedOrder]], Awaitable[Sequence[OwedOrder]]]
    write: Callable[[Sequence[OwedOrder], datetime], Iterator[Outgoing]]
    prepare: Callable[[Sequence[OwedOrder]], Awaitable[None] | None] = lambda _orders: None  # before they are written
    sign: Callable[[Iterable[OwedOrder]], Awaitable[None] | None] = lambda _orders: None  # before a batch is made
    recalled: Callable[[OwedOrder], bool] = lambda _order: False  # it may not go any more
    may_recall: Callable[[], bool] = lambda: True  # False: `recalled` is so of none


class Publisher:
    def __init__(self, broker: Broker, clock: Clock, receivers: Receivers) -> None:
        self._broker = broker
        self._clock = clock
        self._to = receivers
        self._owed = FairQueue()
        self._late: list[OwedOrder] = []  # orders that had to wait: they may not be wanted any more
        self._arrived = asyncio.Event()
        self._flights: set[asyncio.Task[None]] = set()
        self._batches: list[list[OwedOrder]] = []  # what is left of those that are being published
        self._in_flight = 0  # orders that are being published
        self.failing_since: datetime | None = None

    @property
    def waiting(self) -> int:
        return len(self._owed) + len(self._late) + self._in_flight

    @property
    def oldest(self) -> datetime | None:
        """Since when the oldest order is owed that no broker has confirmed."""
        heads = [batch[0] for batch in (self._late, *self._batches) if batch]
        first = self._owed.oldest
        return min((one.since for one in (*heads, *([] if first is None else [first]))), default=None)

    def add(self, owed: OwedOrder) -> None:
        """Queue an order; `go` begins to publish."""
        self._owed.add(owed)

    def go(self) -> None:
        self._arrived.set()

    def add_wanted(self, owed: Iterable[OwedOrder]) -> None:
        """Queue orders that had to wait; those that still have to be sent are published."""
        self._late.extend(owed)
        self._arrived.set()

    async def run(self) -> None:
        """Publish for ever. While a server confirms one batch the next is on its way: no order is needed."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._owed or self._late:
                if len(self._flights) >= BATCHES_IN_FLIGHT:
                    await asyncio.wait(self._flights, return_when=asyncio.FIRST_COMPLETED)
                    continue
                if self._late:
                    late = list(self._late)  # they count as waiting until it is known
                    wanted = await self._to.wanted(late)
                    del self._late[: len(late)]
                    self._owed.extend(wanted)
                batch = await self._next_batch()
                if not batch:
                    continue
                if self._broker.traits.volatile:
                    await self._publish(batch)
                    continue
                self._in_flight += len(batch)
                task = asyncio.create_task(self._fly(batch))
                self._flights.add(task)
                task.add_done_callback(self._flights.discard)

    async def flush(self) -> None:
        """Publish what was added, now: returns when it is confirmed, refused or postponed."""
        while batch := await self._next_batch():
            await self._publish(batch)
        if self._flights:  # some of it may have gone that way meanwhile
            await asyncio.wait(self._flights)

    async def _next_batch(self) -> list[OwedOrder]:
        """Take orders of all runs in turns and write their messages."""
        batch: list[OwedOrder] = []
        size, now = 0, self._clock.now()
        if (signing := self._to.sign(self._owed.upcoming(BATCH_MAX_ORDERS))) is not None:
            await signing
        while self._owed and len(batch) < BATCH_MAX_ORDERS and size < BATCH_MAX_BYTES:
            share = self._going(self._owed.take(BATCH_MAX_ORDERS - len(batch)))
            if (preparing := self._to.prepare(share)) is not None:
                self._in_flight += len(share)
                try:
                    await preparing
                finally:
                    self._in_flight -= len(share)
            messages = self._to.write(share, now)
            for number, one in enumerate(share):
                if size >= BATCH_MAX_BYTES:
                    self._owed.put_back(share[number:])
                    break
                try:
                    one.message = next(messages)
                except Exception as error:
                    self._to.refused(one, f"it cannot be written: {error}")
                    messages = self._to.write(share[number + 1 :], now)
                    continue
                batch.append(one)
                size += len(one.message.body)
        return batch

    def _going(self, owed: Sequence[OwedOrder]) -> Sequence[OwedOrder]:
        """Leave out orders that a pause has recalled: they are taken anew after it."""
        if not self._to.may_recall():
            return owed
        return [one for one in owed if not self._to.recalled(one)]

    def renew(self, run: int, pauses: int) -> set[tuple[int, int]]:
        """Let the orders of a run that are being published go on, although a pause had recalled them; return their
        (position, attempt)."""
        found = [one for batch in self._batches for one in batch if one.run == run]
        for one in found:
            one.pauses = pauses
        return {(one.position, one.attempt) for one in found}

    async def _fly(self, batch: list[OwedOrder]) -> None:
        size = len(batch)
        try:
            await self._publish(batch)
        finally:
            self._in_flight -= size

    async def _publish(self, batch: list[OwedOrder]) -> None:
        self._batches.append(batch)
        try:
            await self._publish_all(batch)
        finally:
            self._batches = [one for one in self._batches if one is not batch]

    async def _publish_all(self, batch: list[OwedOrder]) -> None:
        """Return when all of them are confirmed, refused, no longer owed, or postponed; they leave `batch` then."""
        pauses = backoff(PUBLISH_RETRY_FIRST_S, PUBLISH_RETRY_MAX_S)
        crash.point("before_publish")
        while batch:
            owed = list(batch)
            report, fault = await self._attempt([one.message for one in owed if one.message is not None])
            confirmed, postponed, left = self._sort(owed, report)
            if confirmed:
                crash.point("after_publish")
                self._to.confirmed(confirmed)
            if postponed:
                for one in postponed:
                    one.message = None
                self._to.postponed(postponed, report.reason)
            batch[:] = left
            if not batch:
                self._works()
                return
            self._fails(report.reason, len(batch), fault)
            await asyncio.sleep(next(pauses))
            batch[:] = self._going(await self._still_wanted(batch))

    async def _still_wanted(self, batch: Sequence[OwedOrder]) -> list[OwedOrder]:
        """Leave out orders that need not be sent any more; one that a resume renewed meanwhile has to be."""
        asked = [(one, one.pauses) for one in batch]
        wanted = {id(one) for one in await self._to.wanted(batch)}
        return [one for one, pauses in asked if id(one) in wanted or one.pauses != pauses]

    async def _attempt(self, messages: Sequence[Outgoing]) -> tuple[PublishReport, Exception | None]:
        """Publish once. A fault of an adapter is given beside the report, and costs no message either."""
        try:
            return await self._broker.publish(messages), None
        except Exception as error:
            fault = None if isinstance(error, BrokerError) else error
            return PublishReport(messages, reason=str(error)), fault

    def _works(self) -> None:
        if self.failing_since is not None:
            log.info("publish works again", broker=self._broker.scheme)
            self.failing_since = None
            self._late += self._owed.clear()  # what is owed since long may not be wanted any more
            self._arrived.set()

    def _fails(self, reason: str, messages: int, fault: Exception | None) -> None:
        if self.failing_since is None:
            self.failing_since = self._clock.now()
            log.warning("publish failed", broker=self._broker.scheme, error=reason, messages=messages, exc_info=fault)

    def _sort(
        self, owed: Sequence[OwedOrder], report: PublishReport
    ) -> tuple[Sequence[OwedOrder], Sequence[OwedOrder], Sequence[OwedOrder]]:
        """Return the confirmed ones, those without queue or room, and those to be tried again; tell of refused ones."""
        if report.complete:
            return owed, (), ()
        reasons = {id(refusal.message): refusal.reason for refusal in report.refused}
        missing = {id(message) for message in (*report.no_queue, *report.no_room)}
        unconfirmed = {id(message) for message in report.unconfirmed}
        confirmed: list[OwedOrder] = []
        postponed: list[OwedOrder] = []
        again: list[OwedOrder] = []
        for one in owed:
            key = id(one.message)
            if key in reasons:
                self._to.refused(one, reasons[key])
            elif key in missing:
                postponed.append(one)
            elif key in unconfirmed:
                again.append(one)
            else:
                confirmed.append(one)
        return confirmed, postponed, again

    async def close(self) -> None:
        for task in self._flights:
            task.cancel()
        await asyncio.gather(*self._flights, return_exceptions=True)
