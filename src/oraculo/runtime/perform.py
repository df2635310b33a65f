"""Deeds: what the world is owed is done here, and its outcome comes back as a command.

Publishing and notifying happen after the commit and off the path of the next one. A message that no broker confirms is
tried again with the same message_id until it is confirmed or no longer owed; the journal remembers it meanwhile.

Recording a confirmation is not urgent: it waits a moment, because the answer of a fast worker makes it unnecessary.
That saves a third of the rows when workers are quick and costs nothing when they are not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime

import structlog

from oraculo.core.commands import ConfirmDispatch, RecordDelivery
from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.state import NoticePhase, Orchestration
from oraculo.errors import BrokerError, StoreError
from oraculo.ports.broker import Broker, Outgoing
from oraculo.ports.clock import Clock
from oraculo.ports.notifier import Notice, Notifier, Outcome, Receipt
from oraculo.runtime import crash
from oraculo.runtime.work import Work
from oraculo.wire import payloads

log = structlog.get_logger("oraculo.perform")

BATCH = 1000
NOTICES_AT_ONCE = 32
RETRY_FIRST, RETRY_MOST = 0.05, 5.0
CONFIRM_AFTER = 0.1  # seconds

Owed = tuple[int, int, int, Outgoing]  # run, position (or -1 - notice), attempt, message
Report = Callable[[list[Work]], None]
Lookup = Callable[[int], Awaitable[bytes | None]]


class Performer:
    """`report` takes the commands that outcomes become; `result_of` gives the final document of an orchestration;
    `owed_of` the tickets whose messages are still owed, or None when that is not known at once."""

    def __init__(
        self,
        broker: Broker,
        notifier: Notifier | None,
        clock: Clock,
        report: Report,
        result_of: Lookup,
        owed_of: Callable[[int], Collection[int] | None] = lambda _run: None,
    ) -> None:
        self._broker = broker
        self._notifier = notifier
        self._clock = clock
        self._report = report
        self._result_of = result_of
        self._owed_of = owed_of
        self._owed: deque[Owed] = deque()
        self._arrived = asyncio.Event()
        self._notices: set[asyncio.Task[None]] = set()
        self._gate = asyncio.Semaphore(NOTICES_AT_ONCE)
        self.failing_since: datetime | None = None  # publishing fails since then
        self.published = 0
        self._confirmed: dict[int, list[tuple[int, int]]] = {}
        self._recording: asyncio.TimerHandle | None = None

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        """Queue what these effects ask for. The messages are written now, from the state that was just committed."""
        now = self._clock.now()
        for effect in effects:
            match effect:
                case Publish(tickets):
                    for (position, attempt), (queue, message_id, body) in zip(
                        tickets, payloads.orders(state, tickets, now), strict=True
                    ):
                        self._owed.append((state.run, position, attempt, Outgoing(queue, body, message_id)))
                    self._arrived.set()
                case Notify(number, attempt):
                    if state.notices[number].phase is NoticePhase.OWED:
                        self._notify(state, number, attempt)

    @property
    def waiting(self) -> int:
        return len(self._owed) + len(self._notices) + len(self._confirmed)

    async def run(self) -> None:
        """Publish for ever."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._owed:
                await self._publish([self._owed.popleft() for _ in range(min(BATCH, len(self._owed)))])

    async def _publish(self, owed: Sequence[Owed]) -> None:
        pause = RETRY_FIRST
        crash.point("before_publish")
        while True:
            try:
                await self._broker.publish([message for _, _, _, message in owed])
                break
            except BrokerError as error:
                if self.failing_since is None:
                    self.failing_since = self._clock.now()
                    log.warning("publish failed", broker=self._broker.scheme, error=str(error), messages=len(owed))
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)
        if self.failing_since is not None:
            log.info("publish works again", broker=self._broker.scheme)
            self.failing_since = None
        crash.point("after_publish")
        self.published += len(owed)
        confirmed = self._confirmed
        for run, position, attempt, _ in owed:
            confirmed.setdefault(run, []).append((position, attempt))
        if self._recording is None:
            self._recording = asyncio.get_running_loop().call_later(CONFIRM_AFTER, self._record)

    def confirmed(self, run: int) -> list[tuple[int, int]]:
        """What a broker has confirmed of this orchestration and is not recorded yet."""
        return list(self._confirmed.get(run, ()))

    def ended(self, run: int) -> None:
        """Nobody cares any more what was confirmed of it."""
        self._confirmed.pop(run, None)

    def _record(self) -> None:
        confirmed, self._confirmed, self._recording = self._confirmed, {}, None
        works = []
        for run, tickets in confirmed.items():
            owed = self._owed_of(run)
            left = tickets if owed is None else [ticket for ticket in tickets if ticket[0] in owed]
            if left:
                works.append(Work(ConfirmDispatch(left), run=run))
        if works:
            self._report(works)

    # -- notices -----------------------------------------------------------------------------------------------------

    def _notify(self, state: Orchestration, number: int, attempt: int) -> None:
        target = state.notices[number].target
        where = state.plan.notify.webhook if target == "webhook" else state.plan.notify.queue
        task = asyncio.create_task(self._deliver(state.run, state.correlation_id, number, attempt, target, where or ""))
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _deliver(self, run: int, name: str, number: int, attempt: int, target: str, where: str) -> None:
        async with self._gate:
            body = await self._read_result(run)
            crash.point("before_notify")
            identity = f"{name}.{number}" if target == "fila" else f"orc_{run:x}_{number}"
            if body is None:
                receipt = Receipt(Outcome.REFUSED, "the result is no longer stored")
            elif target == "fila":
                receipt = await self._to_queue(Outgoing(where, body, identity))
            elif self._notifier is None:
                receipt = Receipt(Outcome.REFUSED, "webhooks are not configured")
            else:
                receipt = await self._notifier.notify(Notice(where, identity, body))
            crash.point("after_notify")
        log.info(
            "notice",
            correlation_id=name,
            target=target,
            attempt=attempt,
            outcome=receipt.outcome,
            detail=receipt.detail,
        )
        report = RecordDelivery(
            number,
            attempt,
            delivered=receipt.outcome is Outcome.DELIVERED,
            final=receipt.outcome is Outcome.REFUSED,
            detail=receipt.detail,
            retry_after=receipt.retry_after,
        )
        self._report([Work(report, run=run)])

    async def _read_result(self, run: int) -> bytes | None:
        """A store that is away is waited for: the notice is owed, and nobody else would try it again."""
        pause = RETRY_FIRST
        while True:
            try:
                return await self._result_of(run)
            except StoreError as error:
                log.warning("cannot read a result", error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)

    async def _to_queue(self, message: Outgoing) -> Receipt:
        try:
            await self._broker.publish([message])
        except BrokerError as error:
            return Receipt(Outcome.RETRY, str(error))
        return Receipt(Outcome.DELIVERED, f"published to {message.queue}")

    async def close(self) -> None:
        if self._recording is not None:
            self._recording.cancel()
        for task in list(self._notices):
            task.cancel()
        await asyncio.gather(*self._notices, return_exceptions=True)
