"""Deeds: what the world is owed is done here, and its outcome comes back as a command.

Publishing and notifying happen after the commit and off the path of the next one. A message that no broker confirms is
tried again with the same message_id until it is confirmed or no longer owed; the journal remembers it meanwhile. One
that has to wait holds up no other, and one that no broker will ever take fails its ticket at once, with the reason.

Recording a confirmation is not urgent: it waits a moment, because the answer of a fast worker makes it unnecessary.
That saves a third of the rows when workers are quick and costs nothing when they are not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import structlog

from oraculo.core.commands import ConfirmDispatch, RecordResult
from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.state import NoticePhase, Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Broker, Outgoing, forgets
from oraculo.ports.clock import Clock
from oraculo.ports.notifier import Notifier
from oraculo.runtime import crash
from oraculo.runtime.ceiling import Ceiling, score_of
from oraculo.runtime.notices import Lookup, Notices, Report
from oraculo.runtime.pace import Pace
from oraculo.runtime.work import Work
from oraculo.wire.orders import OrderWriter

log = structlog.get_logger("oraculo.perform")

BATCH = 1000
AT_ONCE = 3  # batches that wait for their confirmation
RETRY_FIRST, RETRY_MOST = 0.05, 5.0
CONFIRM_AFTER = 0.1  # seconds
PACE = 0.02  # seconds between two looks at whose turn it is
POSTPONE = 0.5  # seconds that single messages wait which a working broker did not take

Owed = tuple[int, int, int, Outgoing, datetime]  # run, position, attempt, message, owed since
StillOwed = Callable[[int, Sequence[tuple[int, int]]], Sequence[tuple[int, int]]]


class Performer:
    """`report` takes the commands that outcomes become; `result_of` gives the final document of an orchestration;
    `still_owed` those of some (position, attempt) of a run that may still be owed; `retry_rate`: so many attempts
    after the first go to one queue in a second."""

    confirm_after = CONFIRM_AFTER  # seconds after the first, confirmations are reported together

    def __init__(
        self,
        broker: Broker,
        notifier: Notifier | None,
        clock: Clock,
        report: Report,
        result_of: Lookup,
        still_owed: StillOwed = lambda _run, tickets: tickets,
        writer: OrderWriter | None = None,
        ceiling: int | None = None,
        retry_rate: float | None = None,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._report = report
        self._still_owed = still_owed
        self._writer = writer or OrderWriter()
        self.ceiling: Ceiling[Owed] | None = None if ceiling is None else Ceiling(ceiling)
        self._pace: Pace[Owed] | None = None if retry_rate is None else Pace(retry_rate)
        self._pacing: asyncio.TimerHandle | None = None
        self._owed: deque[Owed] = deque()
        self._flying: set[asyncio.Task[None]] = set()
        self._batches: list[list[Owed]] = []  # those that are being published
        self._in_flight = 0  # messages that are being published
        self._postponed: list[Owed] = []
        self._postponing: asyncio.TimerHandle | None = None
        self._absent: set[str] = set()  # queues that nobody has made yet
        self._arrived = asyncio.Event()
        self._notices = Notices(broker, notifier, report, result_of)
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
                    scheduled = state.plan.flow is not None and self.ceiling is not None
                    for (position, attempt), message in zip(
                        tickets, self._writer.write(state, tickets, now), strict=True
                    ):
                        since = state.tickets[position].dispatched_at if attempt == 1 else None
                        owed = (state.run, position, attempt, message, since or now)
                        if scheduled:
                            self._schedule(state, owed)
                        elif attempt == 1:
                            self._owed.append(owed)
                        else:
                            self._retry(owed)
                    if scheduled:
                        self._let_out()
                    self._arrived.set()
                case Notify(number, attempt):
                    if state.notices[number].phase is NoticePhase.OWED:
                        self._notices.take(state, number, attempt)

    def _schedule(self, state: Orchestration, owed: Owed) -> None:
        """For later, when too many tickets are with workers."""
        assert self.ceiling is not None
        run, position, attempt, _, since = owed
        self.ceiling.add((run, position, attempt), score_of(state, position, since, self._clock), owed)

    def _let_out(self) -> None:
        assert self.ceiling is not None
        due = self.ceiling.due(self._wanted)
        for owed in due:
            self._retry(owed) if owed[2] > 1 else self._owed.append(owed)
        if due:
            self._arrived.set()

    def _retry(self, owed: Owed) -> None:
        """Now, or when it is its turn."""
        loop = asyncio.get_running_loop()
        if self._pace is None or self._pace.may_go(owed[3].queue, owed, loop.time()):
            self._owed.append(owed)
        elif self._pacing is None:
            self._pacing = loop.call_at(self._pace.next_at or 0.0, self._go_on)

    def _go_on(self) -> None:
        """Those whose turn has come; many at once, so that they go together."""
        assert self._pace is not None
        loop = asyncio.get_running_loop()
        self._owed.extend(owed for owed in self._pace.due(loop.time()) if self._wanted(owed))
        self._arrived.set()
        more = len(self._pace) > 0
        self._pacing = loop.call_later(PACE, self._go_on) if more else None

    def _wanted(self, owed: Owed) -> bool:
        """Not those whose tickets were closed meanwhile. A broker that forgets is told again of tickets that are
        running, too."""
        run, position, attempt, message, _ = owed
        return forgets(self._broker, message.queue) or bool(self._still_owed(run, [(position, attempt)]))

    def freed(self, state: Orchestration) -> None:
        """Something happened to an orchestration: what it has no longer with workers makes room for others."""
        if self.ceiling is not None and state.plan.flow is not None:
            self.ceiling.settle(state)
            if len(self.ceiling):
                self._let_out()

    def holds(self, run: int, position: int) -> bool:
        """It waits because too many others are with workers."""
        return self.ceiling is not None and self.ceiling.holds(run, position)

    def rescore(self) -> None:
        """What waits has become more urgent."""
        if self.ceiling is not None:
            self.ceiling.rescore(self._wanted)
            self._let_out()

    async def flush(self) -> None:
        """What was taken, now: returns when it is confirmed, refused or postponed, and every notice was tried once."""
        owed, notices = list(self._owed), set(self._notices.flying)
        self._owed.clear()
        if owed:
            self._batches.append(owed)
            await self._publish(owed)
        if notices:
            await asyncio.wait(notices)

    @property
    def postponed(self) -> set[tuple[int, int, int]]:
        """(run, position, attempt) of what waits for its queue, or for its turn."""
        return {(run, position, attempt) for run, position, attempt, _, _ in (*self._postponed, *(self._pace or ()))}

    @property
    def waiting(self) -> int:
        return (
            len(self._owed) + self._in_flight + len(self._postponed) + len(self._notices.flying) + len(self._confirmed)
        )

    @property
    def held_back(self) -> int:
        """Tickets that wait because too many others are with workers."""
        return 0 if self.ceiling is None else len(self.ceiling)

    @property
    def oldest(self) -> datetime | None:
        """Since when the oldest message is owed that no broker has confirmed; None when there is none."""
        heads = [batch[0][4] for batch in (self._owed, self._postponed, *self._batches) if batch]
        return min(heads, default=None)

    async def run(self) -> None:
        """Publish for ever. While a server confirms one batch the next is on its way: nobody needs their order."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._owed:
                if len(self._flying) >= AT_ONCE:
                    await asyncio.wait(self._flying, return_when=asyncio.FIRST_COMPLETED)
                    continue
                batch = [self._owed.popleft() for _ in range(min(BATCH, len(self._owed)))]
                self._batches.append(batch)
                if self._broker.volatile:
                    await self._publish(batch)
                    continue
                self._in_flight += len(batch)
                task = asyncio.create_task(self._fly(batch))
                self._flying.add(task)
                task.add_done_callback(self._flying.discard)

    async def _fly(self, batch: list[Owed]) -> None:
        try:
            await self._publish(batch)
        finally:
            self._in_flight -= len(batch)

    async def _publish(self, batch: list[Owed]) -> None:
        try:
            await self._publish_all(batch)
        finally:
            self._batches.remove(batch)

    async def _publish_all(self, owed: Sequence[Owed]) -> None:
        """Returns when all of them are confirmed, refused, no longer owed, or postponed."""
        pause = RETRY_FIRST
        crash.point("before_publish")
        while owed:
            try:
                await self._broker.publish([message for _, _, _, message, _ in owed])
                self._works()
                break
            except BrokerUnavailableError as error:
                owed, left = self._sort(owed, error)
                if error.works or error.refused:
                    self._works()
                if owed:
                    crash.point("after_publish")
                    self._confirm(owed)
                owed = left
                if left and error.works:
                    self._postpone(left, str(error))
                    return
                failure: Exception = error
            except Exception as error:  # an adapter that is at fault must not cost a message either
                failure = error
            if owed:
                if self.failing_since is None:
                    self.failing_since = self._clock.now()
                    unexpected = None if isinstance(failure, BrokerError) else failure
                    log.warning(
                        "publish failed",
                        broker=self._broker.scheme,
                        error=str(failure),
                        messages=len(owed),
                        exc_info=unexpected,
                    )
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)
                owed = self._still(owed)
        if owed:
            crash.point("after_publish")
            self._confirm(owed)

    def _works(self) -> None:
        if self.failing_since is not None:
            log.info("publish works again", broker=self._broker.scheme)
            self.failing_since = None

    def _sort(self, owed: Sequence[Owed], error: BrokerUnavailableError) -> tuple[list[Owed], list[Owed]]:
        """Those that were confirmed all the same, and those that are to be tried again. Refused ones fail here."""
        never = {id(message): reason for message, reason in error.refused}
        again = None if error.unconfirmed is None else {id(message) for message in error.unconfirmed}
        confirmed: list[Owed] = []
        left: list[Owed] = []
        for one in owed:
            key = id(one[3])
            if key in never:
                self._refuse(one, never[key])
            elif again is None or key in again:
                left.append(one)
            else:
                confirmed.append(one)
        return confirmed, left

    def _refuse(self, owed: Owed, reason: str) -> None:
        run, position, attempt, message, _ = owed
        log.error("the broker will never take this message", queue=message.queue, run=run, reason=reason)
        problem: list[dict[str, object]] = [
            {"codigo": "mensagem_recusada", "mensagem": f"{message.queue}: {reason}", "definitivo": True}
        ]
        failed = RecordResult(False, b"null", problem, True, ticket_id(run, position), attempt)
        self._report([Work(failed, run=run)])

    def _still(self, owed: Sequence[Owed]) -> list[Owed]:
        """Without those whose tickets were closed while the broker was away."""
        return [one for one in owed if self._wanted(one)]

    def _postpone(self, owed: Sequence[Owed], reason: str) -> None:
        """The broker works, and these have to wait: nobody has made their queue yet."""
        queues = {message.queue for _, _, _, message, _ in owed}
        for queue in queues - self._absent:
            log.info("messages wait for their queue", queue=queue, reason=reason)
        self._absent |= queues
        self._postponed += owed
        if self._postponing is None:
            self._postponing = asyncio.get_running_loop().call_later(POSTPONE, self._resume)

    def _resume(self) -> None:
        postponed, self._postponed, self._postponing = self._postponed, [], None
        self._owed.extend(self._still(postponed))
        self._arrived.set()

    def _confirm(self, owed: Sequence[Owed]) -> None:
        self.published += len(owed)
        confirmed = self._confirmed
        for run, position, attempt, message, _ in owed:
            confirmed.setdefault(run, []).append((position, attempt))
            if self._absent:
                self._absent.discard(message.queue)
        if self._recording is None:
            self._recording = asyncio.get_running_loop().call_later(self.confirm_after, self._record)

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
            left = self._still_owed(run, tickets)
            if left:
                works.append(Work(ConfirmDispatch(list(left)), run=run))
        if works:
            self._report(works)

    async def close(self) -> None:
        for timer in (self._recording, self._postponing, self._pacing):
            if timer is not None:
                timer.cancel()
        left = [*self._notices.flying, *self._flying]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
