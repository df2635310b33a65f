"""Delivery → message → command → durable → acknowledged; or quarantined with its bytes and a reason.

Nothing is acknowledged before it is durable. Nothing blocks a queue: what cannot be read becomes a dead letter in the
same transaction as its neighbours' results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog

from oraculo.errors import BrokerError, BusyError, PlanError, StoreError, WireError
from oraculo.ports.broker import Broker, Delivery, Settle, Settlement
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime import crash

log = structlog.get_logger("oraculo.intake")

FETCH_MAX_MESSAGES = 512
FETCH_WAIT_S = 5.0
RETRY_DELAY_S = 1.0
GATHER_S = 0.003  # how long answers after which nothing follows wait for others, to be committed together
GATHER_MAX_MESSAGES = 8  # with more than that a commit is worth it anyway
FULL_POLL_S = 0.2

Prepare = Callable[[Sequence[bytes]], Awaitable[None]]
Submit = Callable[[list[Work]], Awaitable[list[Outcome]]]


class Guard(Protocol):
    async def judged(
        self, messages: Sequence[tuple[bytes, Mapping[str, str]]], works: Sequence[Work], /
    ) -> list[Work]: ...


class Translate(Protocol):
    def __call__(self, raw: bytes, queue: str, headers: Mapping[str, str] = ..., /) -> Work: ...


def quarantined(raw: bytes, queue: str, error: WireError | PlanError, correlation_id: str = "") -> Work:
    reason = error.code if isinstance(error, WireError) else "invalid_plan"
    dead = DeadLetter(queue, reason, error.detail, raw, correlation_id or None)
    return Work(dead=dead, queue=queue, correlation_id=correlation_id, body=raw)


class QueueConsumer:
    """Takes from one queue for ever. `translate` makes work of a message; `submit` returns once it is durable. While
    `full` says so, messages are left where they are: the queue is the best place for them to wait. A few for which
    `may_wait` holds wait a moment for others. `heard` is told of each one. `prepare` finds out whatever `translate` has
    to know of them, `guard` who sent them; a BrokerError or StoreError of theirs means: not yet."""

    slow = False

    def __init__(
        self,
        broker: Broker,
        queue: str,
        translate: Translate,
        submit: Submit,
        full: Callable[[], bool] = lambda: False,
        heard: Callable[[Work], None] | None = None,
        prepare: Prepare | None = None,
        guard: Guard | None = None,
        may_wait: Callable[[Sequence[Work]], bool] = lambda _works: False,
    ) -> None:
        self._broker = broker
        self.queue = queue
        self._translate = translate
        self._submit = submit
        self._full = full
        self._heard = heard
        self._prepare = prepare
        self._guard = guard
        self._may_wait = may_wait
        self._taken: dict[str, int] = {}
        self.returned = 0  # messages that were given back, because nothing could be done with them yet
        self.fetches = 0
        self.asking = False
        self._failing = False

    def taken(self, broker: str | None = None) -> int:
        """Messages that came so far: from all brokers, or from one. Where there is only one, they do not name it."""
        if broker is None:
            return sum(self._taken.values())
        return self._taken.get(broker, 0) + self._taken.get("", 0)

    async def run(self) -> None:
        while True:
            while self._full():  # noqa: ASYNC110
                await asyncio.sleep(FULL_POLL_S)
            self.asking = True
            try:
                deliveries = await self._broker.fetch(self.queue, limit=FETCH_MAX_MESSAGES, wait=FETCH_WAIT_S)
            except BrokerError as error:
                if not self._failing:
                    log.warning(
                        "fetch failed: accepted requests wait until the broker is back",
                        queue=self.queue,
                        error=str(error),
                    )
                    self._failing = True
                await asyncio.sleep(RETRY_DELAY_S)
                continue
            finally:
                self.asking = False
            if self._failing:
                log.info("fetch works again", queue=self.queue)
                self._failing = False
            self.fetches += 1
            if deliveries:
                await self.take(deliveries)

    async def take(self, came: Sequence[Delivery]) -> None:
        deliveries, works = list(came), await self._readable(came)
        if not works:
            return
        if len(works) <= GATHER_MAX_MESSAGES and self._may_wait(works):
            await self._gather(deliveries, works)
        for delivery, work in zip(deliveries, works, strict=True):
            work.broker = delivery.broker
            self._taken[delivery.broker] = self._taken.get(delivery.broker, 0) + 1
            if self._heard is not None:
                self._heard(work)
        try:
            outcomes = await self._submit(works)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await self._give_back(deliveries)
            if not isinstance(error, StoreError | BusyError):
                raise
            log.warning(
                "messages given back: not durable", queue=self.queue, messages=len(deliveries), error=str(error)
            )
            return
        crash.point("before_ack")
        settlements = [_settlement(*pair) for pair in zip(deliveries, outcomes, strict=True)]
        self.returned += sum(1 for settlement in settlements if settlement.verdict is Settle.RETRY)
        await self._settle(settlements)
        crash.point("after_ack")

    async def _gather(self, deliveries: list[Delivery], works: list[Work]) -> None:
        """Add what comes within a moment, until something follows from it: each answer alone would be a commit of its
        own, and the last one would wait for all of them."""
        loop = asyncio.get_running_loop()
        until = loop.time() + GATHER_S
        while len(works) <= GATHER_MAX_MESSAGES and self._may_wait(works) and (left := until - loop.time()) > 0:
            try:
                more = await self._broker.fetch(self.queue, limit=FETCH_MAX_MESSAGES, wait=left)
            except BrokerError:
                return  # the next fetch will say so
            if not more:
                return
            read = await self._readable(more)
            if read:
                deliveries += more
                works += read

    async def _readable(self, deliveries: Sequence[Delivery]) -> list[Work]:
        """What these are; nothing, and they are given back, when that cannot be found out yet."""
        try:
            return await self._read(deliveries)
        except (BrokerError, StoreError) as error:
            log.warning("messages given back: not readable yet", queue=self.queue, error=str(error))
            await self._give_back(deliveries)
            return []

    async def _read(self, deliveries: Sequence[Delivery]) -> list[Work]:
        if self._prepare is not None:
            await self._prepare([delivery.body for delivery in deliveries])
        works = [self._translate(delivery.body, self.queue, delivery.headers) for delivery in deliveries]
        if self._guard is None:
            return works
        return await self._guard.judged([(delivery.body, delivery.headers) for delivery in deliveries], works)

    async def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        self.returned += len(deliveries)
        await self._settle([Settlement(delivery, Settle.RETRY, RETRY_DELAY_S) for delivery in deliveries])

    async def _settle(self, settlements: Sequence[Settlement]) -> None:
        """A lost acknowledgement only means that the message comes again and is seen to be a duplicate."""
        try:
            await self._broker.settle(settlements)
        except BrokerError as error:
            log.warning("settle failed", queue=self.queue, error=str(error))


def _settlement(delivery: Delivery, outcome: Outcome) -> Settlement:
    return Settlement(delivery, Settle.RETRY, RETRY_DELAY_S) if outcome.fate is Fate.RETRY else Settlement(delivery)
