"""Journal tail → sinks: audit, telemetry and whatever else is a reading of the journal, kept elsewhere.

Each sink has a projection of its own with a durable cursor in the store: read on from the cursor in the order of
commits, rebuild the states, hand both over, move the cursor. A sink that is away stops its own projection and nothing
else; the journal keeps what it has not read (`oraculo prune` leaves that alone) until it is back. Where several
processes share a store, one that lives moves the cursor, and another one goes on when it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import structlog

from oraculo.core.events import OrchestrationStarted
from oraculo.core.replay import rebuild
from oraculo.errors import FencedError, OraculoError
from oraculo.ports.breakers import BREAKER_CURSOR
from oraculo.ports.clock import Clock
from oraculo.ports.cursors import Cursors, Lag
from oraculo.ports.journal import Batch, Journal, Recorded
from oraculo.ports.observer import EventsByType
from oraculo.ports.projection import Entry, Sink
from oraculo.ports.system_events import SystemEventLog
from oraculo.runtime.kernel.cache import StateCache

log = structlog.get_logger("oraculo.project")

BATCH_STEPS = 256  # steps handed over together
POLL_INTERVAL_S = 0.5  # between two looks at the journal when no commit was heard of
RETRY_PAUSE_FIRST_S, RETRY_PAUSE_MAX_S = 0.1, 5.0  # before a sink that failed is tried again
MAX_TICKETS_IN_MEMORY = 200_000  # in memory, of each projection
MAX_UNWANTED_RUNS = 100_000  # orchestrations known to be of no interest
SKIP_INTERVAL_S, SKIP_STEPS = 5.0, 50_000  # after which a cursor moves over what its sink does not read
STOP_TIMEOUT_S = 2.0  # how long the end of a process waits for what is not written yet
_SYSTEM_SUFFIX = "/system"  # the cursor of system events is named after that of the journal
ALERTS_SUFFIX = "/alerts"  # and one of alerts is not of the journal either


def journal_cursors(cursors: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each projection and how far it has read the journal."""
    return [
        (name, position) for name, position in cursors.items() if not name.endswith((_SYSTEM_SUFFIX, ALERTS_SUFFIX))
    ]


async def unread(store: Cursors, types: Mapping[str, str], ignored: Sequence[str] = ()) -> tuple[str, Lag] | None:
    """The projection that has read the least of what it wants, and what it has not read; None without projections.

    `types` names the one type of orchestrations that a projection reads, for each that does not read all: its cursor
    stays behind while there is nothing for it, and nothing is unread all the same. Projections in `ignored` do not
    count, and breakers never do: they care for what is new."""
    lags = {
        name: await store.lag(position, types.get(name))
        for name, position in journal_cursors(await store.cursors()) if name not in (*ignored, BREAKER_CURSOR)
    }  # fmt: skip
    return min(lags.items(), key=lambda one: one[1].read, default=None)


class ProjectedStore(Journal, SystemEventLog, Cursors, Protocol):
    """The parts of a store that projections read, and where they keep their place."""


class Projection:
    """The projection of one sink. `active`: this process moves its cursor; `failing_since`: since when it fails."""

    def __init__(self, store: ProjectedStore, sink: Sink, clock: Clock) -> None:
        self.name = sink.name
        self.tipo = sink.tipo
        self.active = False
        self.recorded = 0  # steps, since the start
        self.failures = 0  # since the start
        self.failing_since: datetime | None = None
        self.error = ""
        self.lag = Lag()
        self.news = asyncio.Event()
        self._store = store
        self._sink = sink
        self._clock = clock
        self._states = StateCache(MAX_TICKETS_IN_MEMORY)
        self._unwanted: OrderedDict[int, None] = OrderedDict()
        self._pause = RETRY_PAUSE_FIRST_S
        self._note_at = 0.0  # when to look at system events again
        self._skip_at = 0.0  # when to move over what is not for this sink

    def age(self) -> float:
        """Seconds since the oldest step that the sink has not got was committed."""
        since = self.lag.since
        return 0.0 if since is None else max(0.0, (self._clock.now() - since).total_seconds())

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            self.news.clear()
            try:
                more = await self.round()
            except Exception as error:
                await self._failed(error)
                continue
            self._worked()
            if more:
                await asyncio.sleep(0)
            else:
                await self._wait()

    async def round(self) -> bool:
        """Hand over one batch of steps and one of system events; return whether there may be more. A batch that failed
        is handed over again by the next round."""
        after = await self._store.claim_cursor(self.name)
        if after is None:
            self._give_up()
            return False
        if not self.active or self.tipo is not None:
            self.lag = await self._store.lag(after, self.tipo)
            self.active = True
            if self._is_stale():
                await self._store.move_cursor(self.name, self.lag.end)
                self.lag = Lag(end=self.lag.end)
                return True
            if not self.lag.steps:
                await self._skip(after, self.lag.end)
                return await self._note()
        steps = await self._store.tail(after, BATCH_STEPS, self.tipo)
        if steps:  # what is behind is known before the sink is asked: it may take its time, or never answer
            self.lag = await self._unread(after, steps)
            await self._record(steps)
        if len(steps) < BATCH_STEPS:
            self.lag = Lag()
            return await self._note()
        self.lag = await self._store.lag(steps[-1].position, self.tipo)
        return True

    def _is_stale(self) -> bool:
        """Return whether what is unread begins before the time that its sink cares for."""
        lately, since = self._sink.only_lately, self.lag.since
        return lately is not None and since is not None and self._clock.now() - since > lately

    async def _unread(self, after: int, steps: Sequence[Recorded]) -> Lag:
        """What the sink has still to get while it is handed these steps; they are all there is when they are few."""
        if self.tipo is not None:
            return self.lag
        if len(steps) == BATCH_STEPS:
            return await self._store.lag(after)
        return Lag(steps[-1].position - steps[0].position + 1, steps[0].at, steps[-1].position)

    async def _skip(self, after: int, end: int) -> None:
        """Move the cursor over steps that its sink does not read; now and then only, because that is a transaction."""
        now = asyncio.get_running_loop().time()
        if end > after and (end - after >= SKIP_STEPS or now >= self._skip_at):
            self._skip_at = now + SKIP_INTERVAL_S
            await self._store.move_cursor(self.name, end)

    async def _wait(self) -> None:
        if not self.active:  # another process hands over what is new
            await asyncio.sleep(POLL_INTERVAL_S)
            return
        try:
            async with asyncio.timeout(POLL_INTERVAL_S):
                await self.news.wait()
            await asyncio.sleep(self._sink.gather_s)
        except TimeoutError:
            pass

    async def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.error = str(error) or type(error).__name__
        if isinstance(error, FencedError):
            self._give_up()
        elif self.failing_since is None:
            self.failing_since = self._clock.now()
            if isinstance(error, OraculoError):
                log.warning("projection waits for its sink", projection=self.name, error=self.error)
            else:
                log.exception("projection failed", projection=self.name)
        await self._look_back()
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, RETRY_PAUSE_MAX_S)

    def _worked(self) -> None:
        if self.failing_since is not None:
            log.info("projection goes on", projection=self.name)
        self.failing_since, self.error, self._pause = None, "", RETRY_PAUSE_FIRST_S

    async def _look_back(self) -> None:
        """Read how much is waiting for the sink."""
        with contextlib.suppress(OraculoError):  # the store is away: what was known stays
            after = (await self._store.cursors()).get(self.name, 0)
            self.lag = await self._store.lag(after, self.tipo)

    def _give_up(self) -> None:
        """Forget what is in memory: another process moves the cursor from here on."""
        self.active = False
        self.lag = Lag()
        self._states = StateCache(MAX_TICKETS_IN_MEMORY)

    # -- the journal -------------------------------------------------------------------------------------------------

    async def _record(self, steps: Sequence[Recorded]) -> None:
        try:
            await self._load(steps)
            entries = self._entries(steps)
            await self._sink.record(entries)
            for _ in entries:  # a sink may stop early; the states have to go on
                pass
            await self._store.move_cursor(self.name, steps[-1].position)
        except BaseException:
            for step in steps:  # they come again, and their states have gone on
                self._states.drop(step.run)
            raise
        self.recorded += len(steps)
        self._forget(steps)

    async def _load(self, steps: Sequence[Recorded]) -> None:
        """Load the states as they were before the first of these steps."""
        before: dict[int, int] = {}  # run → how many events it had
        for step in steps:
            before.setdefault(step.run, step.first - 1)
        missing = [run for run, version in before.items() if version and not self._knows(run, version)]
        for run, recorded in (await self._store.load(missing)).items() if missing else ():
            started = recorded[0].events[0]
            assert isinstance(started, OrchestrationStarted)
            if self._sink.wants(started):
                self._states.put(rebuild(one for one in recorded if one.first <= before[run]))
            else:
                self._ignore(run)

    def _knows(self, run: int, version: int) -> bool:
        if run in self._unwanted:
            return True
        state = self._states.get(run)
        if state is not None and state.version != version:
            self._states.drop(run)
            return False
        return state is not None

    def _entries(self, steps: Sequence[Recorded]) -> Iterator[Entry]:
        for step in steps:
            if step.erased:
                continue
            first = step.events[0]
            if isinstance(first, OrchestrationStarted):
                if not self._sink.wants(first):
                    self._ignore(step.run)
                    continue
                state = rebuild([step])
                self._states.put(state)
            else:
                known = self._states.get(step.run)
                if known is None:  # unwanted, or forgotten a moment ago
                    continue
                state = rebuild([step], known)
            yield Entry(step, state)

    def _ignore(self, run: int) -> None:
        self._unwanted[run] = None
        if len(self._unwanted) > MAX_UNWANTED_RUNS:
            self._unwanted.popitem(last=False)

    def _forget(self, steps: Sequence[Recorded]) -> None:
        for step in steps:
            state = self._states.get(step.run)
            if state is not None and state.finished:
                self._states.drop(step.run)
        self._states.trim()

    # -- the system --------------------------------------------------------------------------------------------------

    async def _note(self) -> bool:
        """Hand over system events. No commit announces them, so they are looked for now and then."""
        now = asyncio.get_running_loop().time()
        if now < self._note_at:
            return False
        name = self.name + _SYSTEM_SUFFIX
        after = await self._store.claim_cursor(name)
        if after is None:
            return False
        events = await self._store.later_system_events(after, BATCH_STEPS)
        if events:
            await self._sink.note(events)
            await self._store.move_cursor(name, events[-1].id)
        if len(events) == BATCH_STEPS:
            return True
        self._note_at = now + POLL_INTERVAL_S
        return False


class Projections:
    """All projections of a process. As an observer it hears of commits here; commits of other processes are polled."""

    def __init__(self, store: ProjectedStore, sinks: Sequence[Sink], clock: Clock) -> None:
        names = [sink.name for sink in sinks]
        assert len(set(names)) == len(names), names
        self._sinks = list(sinks)
        self._tasks: list[asyncio.Task[None]] = []
        self.all = [Projection(store, sink, clock) for sink in sinks]

    def saw(self, batch: Batch, _told: EventsByType) -> None:
        for one in self.all:
            if batch.steps and (one.tipo is None or any(step.state.plan.tipo == one.tipo for step in batch.steps)):
                one.news.set()

    def start(self) -> None:
        self._tasks = [asyncio.create_task(one.run(), name=f"projection {one.name}") for one in self.all]

    async def stop(self) -> None:
        """Hand over what was committed, if that is quickly done; the rest follows at the next start."""
        await _ended(self._tasks)
        rest = [asyncio.create_task(_rest(one)) for one in self.all if one.active and one.failing_since is None]
        if rest:
            await asyncio.wait(rest, timeout=STOP_TIMEOUT_S)
            await _ended(rest)
        for sink in self._sinks:
            await sink.close()


async def _rest(one: Projection) -> None:
    try:
        while await one.round():
            pass
    except Exception as error:
        log.info("projection stopped with steps left for the next start", projection=one.name, error=str(error))


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until they end. A client that is cancelled while its connection breaks may lose the cancellation."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=STOP_TIMEOUT_S)
