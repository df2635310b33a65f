"""One of several processes on a shared store: stays a member and hears what others wrote.

Every process may take any message and step any orchestration: the store lets only one at a time. So nothing is owned,
and nothing has to move when a process dies, but what was in its memory: messages that it was about to send, and timers
(kernel/takeover.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from oraculo.errors import FencedError, StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.engine import Membership
from oraculo.ports.membership import Member
from oraculo.ports.store import SharedStore
from oraculo.runtime.kernel.takeover import TakeOver
from oraculo.runtime.watchers import RunWatchers

log = structlog.get_logger("oraculo.replica")

TAKEOVER_INTERVAL_S = 1.0  # between two looks at the dead and the overdue
COUNT_INTERVAL_S = 5.0  # between two counts of what is open, in a process that does not look after others
LISTEN_MAX_S, LISTEN_MIN_S = 0.5, 0.02  # between two looks at what others wrote
REJOIN_DELAY_S = 0.02


class Replica:
    """`joined` is told who this process is now; `opened` how many orchestrations are open in all. A process without
    `takeover` leaves what others left to others."""

    def __init__(
        self,
        store: SharedStore,
        name: str,
        lease: timedelta,
        clock: Clock,
        watchers: RunWatchers,
        *,
        joined: Callable[[Member], None],
        opened: Callable[[int], None],
        takeover: TakeOver | None = None,
    ) -> None:
        self._store = store
        self._name = name
        self._lease = lease
        self._clock = clock
        self._watchers = watchers
        self._joined = joined
        self._opened = opened
        self._takeover = takeover
        self._doubt = asyncio.Event()  # an append was refused: this process may be no member any more
        self._seen: dict[int, int] = {}  # watched runs → their version at the last look
        self._heard: int | None = None  # of what others write
        self._member: Member | None = None
        self._fenced = 0

    def membership(self) -> Membership | None:
        """Return who this process is; None before it has joined."""
        if self._member is None:
            return None
        rescues = 0 if self._takeover is None else self._takeover.rescues
        return Membership(self._name, self._member.slot, self._member.epoch, rescues, self._fenced)

    async def join(self) -> None:
        """Become a member, or a new one after the lease ran out."""
        self._member = await self._store.join(self._name, self._lease)
        self._clock.follow(self._member.joined_at)
        self._joined(self._member)
        log.info("joined", replica=self._name, slot=self._member.slot, epoch=self._member.epoch)

    async def take_over(self) -> None:
        """Look after what others left, at once, if that is for this process to do."""
        if self._takeover is not None:
            await self._takeover.look()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._stay())
            tasks.create_task(self._look_after_others())
            tasks.create_task(self._listen())

    async def stop(self) -> None:
        try:
            await self._store.leave()
        except StoreError as error:
            log.warning("membership not ended: others notice when the lease runs out", error=str(error))

    def store_failed(self, error: StoreError) -> None:
        """Find out at once whether this process is still a member, when an append was refused."""
        if isinstance(error, FencedError):
            self._doubt.set()

    async def _stay(self) -> None:
        """Renew the lease three times in its length; when others have taken over, join anew."""
        while True:
            try:
                async with asyncio.timeout(self._lease.total_seconds() / 3):
                    await self._doubt.wait()
            except TimeoutError:
                pass
            self._doubt.clear()
            try:
                self._clock.follow(await self._store.renew())
            except FencedError:
                self._fenced += 1
                log.warning("lease ran out and others took over; joining anew", replica=self._name)
                await self._rejoin()
            except StoreError as error:
                log.debug("lease not renewed: store unavailable", error=str(error))

    async def _rejoin(self) -> None:
        try:
            await self.join()
        except StoreError as error:
            log.warning("not joined: store unavailable", error=str(error))
            await asyncio.sleep(REJOIN_DELAY_S)
            self._doubt.set()

    async def _look_after_others(self) -> None:
        while True:
            await asyncio.sleep(COUNT_INTERVAL_S if self._takeover is None else TAKEOVER_INTERVAL_S)
            try:
                self._opened(await self._store.open_runs())
                if self._takeover is not None:
                    await self._takeover.look_in_turn()
            except StoreError as error:
                self.store_failed(error)
                log.debug("takeover skipped: store unavailable", error=str(error))

    async def _listen(self) -> None:
        """Tell watchers in this process of what was written elsewhere."""
        while True:
            await asyncio.sleep(LISTEN_MIN_S)
            watched = self._watchers.watched()
            if not watched:
                self._seen.clear()
                continue
            try:
                await self._look(watched)
                self._heard = await self._store.changed(LISTEN_MAX_S, self._heard)
            except StoreError as error:
                log.debug("changes not read: store unavailable", error=str(error))
                await asyncio.sleep(LISTEN_MAX_S)

    async def _look(self, watched: Sequence[int]) -> None:
        found = await self._store.progress(watched)
        for run, progress in found.items():
            if self._seen.get(run) != progress.version:
                self._watchers.changed(run)
            if progress.closed and self._watchers.awaited(run):
                result = await self._store.result(run)
                if result is not None:
                    self._watchers.ended(run, result)
        self._seen = {run: progress.version for run, progress in found.items()}
