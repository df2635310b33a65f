"""Looking after what other processes left: the debts of those that died, and orchestrations that are overdue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import structlog

from oraculo.ports.cache import Cache
from oraculo.ports.store import SharedStore

log = structlog.get_logger("oraculo.replica")

TAKEOVER_DELAY = timedelta(seconds=1)  # overdue for so long: its own process does not look after it
OVERDUE_MAX_RUNS = 500  # at once
TURN_LEASE_S = 3.0


class TakeOver:
    """`send_again` is given the runs that a dead process owed something for, `wake` those that are overdue for longer
    than `delay`. With a `cache`, the processes that could look take turns."""

    def __init__(
        self,
        store: SharedStore,
        name: str,
        send_again: Callable[[Sequence[int]], Awaitable[None]],
        wake: Callable[[Sequence[int]], None],
        delay: timedelta = TAKEOVER_DELAY,
        cache: Cache | None = None,
    ) -> None:
        self._store = store
        self._name = name
        self._send_again = send_again
        self._wake = wake
        self._delay = delay
        self._cache = cache
        self._owing: list[int] = []  # taken over, and not sent yet
        self.rescues = 0

    async def look_in_turn(self) -> None:
        """Look, unless it is the turn of another process."""
        if self._cache is None or await self._cache.turn("sweep", self._name, TURN_LEASE_S):
            await self.look()

    async def look(self) -> None:
        """Take over from processes that died, and wake what is overdue."""
        dead, owing = await self._store.rescue()
        for member in dead:
            self.rescues += 1
            log.warning("took over from a dead replica", replica=member.name, slot=member.slot, owing=len(owing))
        self._owing += owing  # they are this process's from now on, whatever happens before they are sent
        if self._owing:
            await self._send_again(self._owing)
            self._owing = []
        overdue = await self._store.overdue(self._delay, OVERDUE_MAX_RUNS)
        if overdue:
            self._wake(overdue)
