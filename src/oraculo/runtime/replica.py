"""One of several processes on a shared store: stays a member, takes over from those that died, hears what others wrote.

Every process may take any message and step any orchestration: the store lets only one at a time. So nothing is owned,
and nothing has to move when a process dies, but what was in its memory: messages that it was about to send, and timers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import structlog

from oraculo.errors import FencedError, StoreError
from oraculo.ports.cache import Cache
from oraculo.ports.sharing import Member, SharedStore
from oraculo.runtime.feed import Feed

log = structlog.get_logger("oraculo.replica")

LEASE = timedelta(seconds=10)
SWEEP = 1.0  # seconds between two looks at the dead and the overdue
GRACE = timedelta(seconds=1)  # overdue for so long: its own process does not look after it
OVERDUE = 500  # at once
LISTEN = 0.5  # seconds at most between two looks at what others wrote
BREATH = 0.02  # seconds at least


class Replica:
    """`rescued` is given runs that a dead member owed something for, `wake` those that are overdue; `opened` how many
    orchestrations are open in all; `joined` who we are now; `follow` what time it is in the store. A `passive` one does
    not look after others; others wait for `grace` before they do. With a `cache`, those who could look take turns."""

    def __init__(
        self,
        store: SharedStore,
        name: str,
        feed: Feed,
        *,
        rescued: Callable[[Sequence[int]], Awaitable[None]],
        wake: Callable[[Sequence[int]], None],
        opened: Callable[[int], None],
        joined: Callable[[Member], None],
        follow: Callable[[datetime], None],
        lease: timedelta = LEASE,
        passive: bool = False,
        grace: timedelta = GRACE,
        cache: Cache | None = None,
    ) -> None:
        self._store = store
        self.name = name
        self._feed = feed
        self._rescued = rescued
        self._wake = wake
        self._opened = opened
        self._joined = joined
        self._follow = follow
        self._lease = lease
        self._passive = passive
        self._grace = grace
        self._cache = cache
        self._doubt = asyncio.Event()  # somebody was told that we are no member any more
        self._seen: dict[int, int] = {}  # watched runs → their version when we looked last
        self._owing: list[int] = []  # taken over, and not sent yet
        self._heard: int | None = None  # of what others write
        self.member: Member | None = None
        self.fenced = 0
        self.rescues = 0

    async def start(self) -> None:
        await self._join()
        await self._look_after_others()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._stay())
            tasks.create_task(self._sweep())
            tasks.create_task(self._listen())

    async def stop(self) -> None:
        try:
            await self._store.leave()
        except StoreError as error:
            log.warning("left without saying so: others notice when the lease ends", error=str(error))

    async def members(self) -> list[Member]:
        return await self._store.members()

    def doubt(self) -> None:
        """An append was refused: find out at once who we are."""
        self._doubt.set()

    async def _join(self) -> None:
        self.member = await self._store.join(self.name, self._lease)
        self._follow(self.member.joined_at)
        self._joined(self.member)
        log.info("joined", replica=self.name, slot=self.member.slot, epoch=self.member.epoch)

    async def _stay(self) -> None:
        """The lease is renewed three times in its length; when others have taken over, we begin anew."""
        while True:
            try:
                async with asyncio.timeout(self._lease.total_seconds() / 3):
                    await self._doubt.wait()
            except TimeoutError:
                pass
            self._doubt.clear()
            try:
                self._follow(await self._store.renew())
            except FencedError:
                self.fenced += 1
                log.warning("the lease ran out and others took over; joining anew", replica=self.name)
                await self._again()
            except StoreError as error:
                log.debug("the lease cannot be renewed now", error=str(error))

    async def _again(self) -> None:
        try:
            await self._join()
        except StoreError as error:
            log.warning("cannot join yet", error=str(error))
            await asyncio.sleep(BREATH)
            self._doubt.set()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(5 * SWEEP if self._passive else SWEEP)
            try:
                self._opened(await self._store.open_runs())
                if self._cache is None or await self._cache.turn("sweep", self.name, 3 * SWEEP):
                    await self._look_after_others()
            except FencedError:
                self.doubt()
            except StoreError as error:
                log.debug("cannot look after others now", error=str(error))

    async def _look_after_others(self) -> None:
        if self._passive:
            return
        dead, owing = await self._store.rescue()
        for member in dead:
            self.rescues += 1
            log.warning("took over from a dead replica", replica=member.name, slot=member.slot, owing=len(owing))
        self._owing += owing  # they are ours from now on, whatever happens before they are sent
        if self._owing:
            await self._rescued(self._owing)
            self._owing = []
        overdue = await self._store.overdue(self._grace, OVERDUE)
        if overdue:
            self._wake(overdue)

    async def _listen(self) -> None:
        """Tell those who wait here of what was written elsewhere."""
        while True:
            await asyncio.sleep(BREATH)
            watched = self._feed.watched()
            if not watched:
                self._seen.clear()
                continue
            try:
                await self._look(watched)
                self._heard = await self._store.changed(LISTEN, self._heard)
            except StoreError as error:
                log.debug("cannot listen now", error=str(error))
                await asyncio.sleep(LISTEN)

    async def _look(self, watched: Sequence[int]) -> None:
        found = await self._store.progress(watched)
        for run, progress in found.items():
            if self._seen.get(run) != progress.version:
                self._feed.changed(run)
            if progress.closed and self._feed.awaited(run):
                result = await self._store.result(run)
                if result is not None:
                    self._feed.ended(run, result)
        self._seen = {run: progress.version for run, progress in found.items()}
