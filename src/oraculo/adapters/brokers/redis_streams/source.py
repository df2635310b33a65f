"""One queue as this process sees it: the fetches that wait, what came, and what is held until it is settled.

Nothing here talks to the server. An entry as it came, `[id, fields]`, is the tag of its delivery; it is held as long as
`held[id]` is that very list, so a delivery that was settled, given back or lost is recognised for ever.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable
from typing import Any

from oraculo.adapters.brokers.redis_streams.connection import Connection
from oraculo.adapters.brokers.redis_streams.entries import read
from oraculo.ports.broker import Delivery

FETCH_MAX_MESSAGES = 10_000  # messages asked for at once
CONSUMER_PREFIX = "oraculo-"

Entry = list[Any]  # [id, [field, value, …]]


class Waiter:
    """A fetch that waits for up to `limit` messages."""

    __slots__ = ("future", "limit", "until")

    def __init__(self, limit: int, until: float) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.limit = limit
        self.until = until

    def release(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Source:
    """The state of one queue. `owed_acks` and `owed_returns` are verdicts that the server has not confirmed."""

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.consumer = CONSUMER_PREFIX + secrets.token_hex(6)
        self.ready: deque[Delivery] = deque()
        self.waiters: deque[Waiter] = deque()
        self.held: dict[bytes, Entry] = {}
        self.owed_acks: list[bytes] = []  # verdicts that the server has not confirmed
        self.owed_returns: list[bytes] = []
        self.fetched_at = now
        self.claim_at = 0.0  # when to look for what others left
        self.error = ""  # why the server does not let us read
        self.reader: asyncio.Task[None] | None = None
        self.blocked: Connection | None = None  # the connection on which the server makes us wait
        self._wanted = asyncio.Event()

    @property
    def empty(self) -> bool:
        return not (self.ready or self.waiters or self.held or self.owed_acks or self.owed_returns or self.reader)

    # -- fetches that wait -------------------------------------------------------------------------------------------

    def join(self, limit: int, until: float) -> Waiter:
        waiter = Waiter(limit, until)
        self.waiters.append(waiter)
        self._wanted.set()
        return waiter

    def leave(self, waiter: Waiter) -> bool:
        """Remove a waiter; True if it was the last."""
        if waiter in self.waiters:
            self.waiters.remove(waiter)
        return not self.waiters

    def demand(self, now: float) -> tuple[int, float]:
        """How many messages are waited for, and for how many more seconds."""
        count, until = 0, now
        for waiter in self.waiters:
            count += waiter.limit
            until = max(until, waiter.until)
        return min(count, FETCH_MAX_MESSAGES), until - now

    async def wanted(self, patience: float) -> bool:
        """Return True when a fetch waits; False if none does for `patience` seconds."""
        while not self.waiters:
            self._wanted.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._wanted.wait()
            except TimeoutError:
                return bool(self.waiters)
        return True

    def wake(self) -> None:
        """Wake the fetches that have waited longest, as many as there is something for."""
        left = len(self.ready)
        while left > 0 and self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.future.done():
                waiter.release()
                left -= waiter.limit

    # -- what came ---------------------------------------------------------------------------------------------------

    def arrived(self, entries: Iterable[Entry], redelivered: bool) -> None:
        name, ready, held = self.name, self.ready, self.held
        for entry in entries:
            body, headers = read(entry[1])
            held[entry[0]] = entry
            ready.append(Delivery(name, body, entry, redelivered, headers))
        self.error = ""
        self.wake()

    def take(self, limit: int) -> list[Delivery]:
        ready = self.ready
        if len(ready) <= limit:
            taken = list(ready)
            ready.clear()
            return taken
        taken = [ready.popleft() for _ in range(limit)]
        self.wake()
        return taken

    def settled(self, delivery: Delivery) -> bytes | None:
        """The id of what is not held any more from now on; None when it was not."""
        entry: Entry = delivery.tag
        if self.held.get(entry[0]) is not entry:
            return None
        del self.held[entry[0]]
        return bytes(entry[0])

    def unused(self) -> list[bytes]:
        """Stop holding what was taken and never handed out; return its ids."""
        ids = [delivery.tag[0] for delivery in self.ready]
        self.ready.clear()
        for key in ids:
            self.held.pop(key, None)
        return ids

    def surrender(self) -> None:
        """Owe the server everything that is held."""
        self.owed_returns += self.held
        self.held.clear()
        self.ready.clear()

    def lose(self, ids: Iterable[bytes]) -> None:
        """Stop holding these: other consumers have them, or they are gone."""
        for key in ids:
            self.held.pop(key, None)
        if self.ready:
            self.ready = deque(d for d in self.ready if self.held.get(d.tag[0]) is d.tag)

    def forget(self) -> None:
        """The server knows nothing of this queue any more."""
        self.lose(list(self.held))
        self.owed_acks.clear()
        self.owed_returns.clear()
