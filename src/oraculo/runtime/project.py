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

import structlog

from oraculo.core.events import OrchestrationStarted
from oraculo.core.state import fold
from oraculo.errors import FencedError, OraculoError
from oraculo.ports.clock import Clock
from oraculo.ports.observer import Told
from oraculo.ports.projection import Entry, Sink
from oraculo.ports.store import Batch, Lag, Recorded, Store
from oraculo.runtime.cache import StateCache

log = structlog.get_logger("oraculo.project")

AT_ONCE = 256  # steps handed over together
POLL = 0.5  # seconds between two looks when nobody says that there is something new
GATHER = 0.02  # seconds that news may wait for more news
AGAIN_FIRST, AGAIN_MOST = 0.1, 5.0  # seconds before a sink that failed is tried again
MAX_TICKETS = 200_000  # in memory, of each projection
MAX_UNWANTED = 100_000  # orchestrations known to be of no interest
SKIP, FAR = 5.0, 50_000  # seconds and steps after which a cursor moves over what is not for its sink
LAST = 2.0  # seconds that the end of a process may be put off for what is not written yet
_SYSTEM = "/system"  # the cursor of system events is named after that of the journal


def journal_cursors(cursors: Mapping[str, int]) -> list[tuple[str, int]]:
    """Each projection and how far it has read the journal."""
    return [(name, position) for name, position in cursors.items() if not name.endswith(_SYSTEM)]


def least_read(cursors: Mapping[str, int]) -> tuple[str, int] | None:
    """The projection that has read the least of the journal; None when there is none."""
    return min(journal_cursors(cursors), key=lambda one: one[1], default=None)


class Projection:
    """Of one sink. `active`: it is this process that does it; `failing_since`: the sink, or the store, refuses."""

    def __init__(self, store: Store, sink: Sink, clock: Clock) -> None:
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
        self._states = StateCache(MAX_TICKETS)
        self._unwanted: OrderedDict[int, None] = OrderedDict()
        self._pause = AGAIN_FIRST
        self._note_at = 0.0  # when to look at system events again
        self._skip_at = 0.0  # when to move over what is not for this sink

    def age(self) -> float:
        """Seconds since the oldest step that is not recorded there was committed."""
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
        """One batch from each source; whether there may be more. What fails comes again."""
        after = await self._store.claim_cursor(self.name)
        if after is None:
            self._give_up()
            return False
        if not self.active or self.tipo is not None:
            self.lag = await self._store.lag(after)
            self.active = True
        end = after + self.lag.steps
        steps = await self._store.tail(after, AT_ONCE, self.tipo)
        if steps:
            await self._record(steps)
        elif self.tipo is not None:
            await self._skip(after, end)
        if len(steps) < AT_ONCE:
            self.lag = Lag()
            return await self._note()
        self.lag = await self._store.lag(steps[-1].position)
        return True

    async def _skip(self, after: int, end: int) -> None:
        """There is nothing for this sink up to there. To say so is a transaction, so that it is not said every time."""
        now = asyncio.get_running_loop().time()
        if end > after and (end - after >= FAR or now >= self._skip_at):
            self._skip_at = now + SKIP
            await self._store.move_cursor(self.name, end)

    async def _wait(self) -> None:
        if not self.active:  # what is new is for another process
            await asyncio.sleep(POLL)
            return
        try:
            async with asyncio.timeout(POLL):
                await self.news.wait()
            await asyncio.sleep(GATHER)
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
                log.warning("a projection waits", projection=self.name, error=self.error)
            else:
                log.exception("a projection cannot go on", projection=self.name)
        await self._look_back()
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, AGAIN_MOST)

    def _worked(self) -> None:
        if self.failing_since is not None:
            log.info("a projection goes on", projection=self.name)
        self.failing_since, self.error, self._pause = None, "", AGAIN_FIRST

    async def _look_back(self) -> None:
        """How much is waiting for the sink."""
        with contextlib.suppress(OraculoError):  # the store is away: what was known stays
            self.lag = await self._store.lag((await self._store.cursors()).get(self.name, 0))

    def _give_up(self) -> None:
        """Another process goes on from here: what is in memory gets old."""
        self.active = False
        self.lag = Lag()
        self._states = StateCache(MAX_TICKETS)

    # -- the journal -------------------------------------------------------------------------------------------------

    async def _record(self, steps: Sequence[Recorded]) -> None:
        try:
            await self._load(steps)
            entries = self._entries(steps)
            await self._sink.record(entries)
            for _ in entries:  # whoever has seen enough has seen all
                pass
            await self._store.move_cursor(self.name, steps[-1].position)
        except BaseException:
            for step in steps:  # they come again, and their states have gone on
                self._states.drop(step.run)
            raise
        self.recorded += len(steps)
        self._forget(steps)

    async def _load(self, steps: Sequence[Recorded]) -> None:
        """The states as they were before the first of these steps."""
        before: dict[int, int] = {}  # run → how many events it had
        for step in steps:
            before.setdefault(step.run, step.first - 1)
        missing = [run for run, version in before.items() if version and not self._knows(run, version)]
        for run, recorded in (await self._store.load(missing)).items() if missing else ():
            started = recorded[0].events[0]
            assert isinstance(started, OrchestrationStarted)
            if self._sink.wants(started):
                earlier = ((one.at, one.events) for one in recorded if one.first <= before[run])
                self._states.put(fold(earlier))
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
            first = step.events[0]
            if isinstance(first, OrchestrationStarted):
                if not self._sink.wants(first):
                    self._ignore(step.run)
                    continue
                state = fold([(step.at, step.events)])
                self._states.put(state)
            else:
                known = self._states.get(step.run)
                if known is None:  # nobody wants it, or it was forgotten a moment ago
                    continue
                state = fold([(step.at, step.events)], known)
            yield Entry(step, state)

    def _ignore(self, run: int) -> None:
        self._unwanted[run] = None
        if len(self._unwanted) > MAX_UNWANTED:
            self._unwanted.popitem(last=False)

    def _forget(self, steps: Sequence[Recorded]) -> None:
        for step in steps:
            state = self._states.get(step.run)
            if state is not None and state.closed_at is not None and not state.owes and state.wake_at() is None:
                self._states.drop(step.run)
        self._states.trim()

    # -- the system --------------------------------------------------------------------------------------------------

    async def _note(self) -> bool:
        """Nobody says when there is something new, so that it is looked for now and then."""
        now = asyncio.get_running_loop().time()
        if now < self._note_at:
            return False
        name = self.name + _SYSTEM
        after = await self._store.claim_cursor(name)
        if after is None:
            return False
        events = await self._store.later_system_events(after, AT_ONCE)
        if events:
            await self._sink.note(events)
            await self._store.move_cursor(name, events[-1].id)
        if len(events) == AT_ONCE:
            return True
        self._note_at = now + POLL
        return False


class Projections:
    """All of a process. As an observer it hears of every commit here; what others commit is found by looking."""

    def __init__(self, store: Store, sinks: Sequence[Sink], clock: Clock) -> None:
        names = [sink.name for sink in sinks]
        assert len(set(names)) == len(names), names
        self._sinks = list(sinks)
        self._tasks: list[asyncio.Task[None]] = []
        self.all = [Projection(store, sink, clock) for sink in sinks]

    def saw(self, batch: Batch, _told: Told) -> None:
        for one in self.all:
            if batch.steps and (one.tipo is None or any(step.state.plan.tipo == one.tipo for step in batch.steps)):
                one.news.set()

    def start(self) -> None:
        self._tasks = [asyncio.create_task(one.run(), name=f"projection {one.name}") for one in self.all]

    async def stop(self) -> None:
        """What was committed is written, if that is quickly done; else at the next start."""
        await _ended(self._tasks)
        rest = [asyncio.create_task(_rest(one)) for one in self.all if one.active and one.failing_since is None]
        if rest:
            await asyncio.wait(rest, timeout=LAST)
            await _ended(rest)
        for sink in self._sinks:
            await sink.close()


async def _rest(one: Projection) -> None:
    try:
        while await one.round():
            pass
    except Exception as error:
        log.info("the rest is projected at the next start", projection=one.name, error=str(error))


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    """A client that is interrupted while its connection breaks may forget that it was: then it is told again."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=LAST)
