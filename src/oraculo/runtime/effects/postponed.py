"""Orders whose queue does not exist yet, or has no room: they are tried again after a moment and hold up no other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from oraculo.runtime.effects.owed import OwedOrder

log = structlog.get_logger("oraculo.perform")

POSTPONE_S = 0.5
TRIED_MAX_ORDERS = 200  # of one queue at a time; the others follow when one of them was taken


class Postponed:
    """`resume` takes the orders back when it is time to try them again."""

    def __init__(self, resume: Callable[[Sequence[OwedOrder]], None]) -> None:
        self._resume_with = resume
        self._queues: dict[str, deque[OwedOrder]] = {}
        self._waited: set[str] = set()  # queues that orders had to wait for, and that have taken none since
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(len(orders) for orders in self._queues.values())

    def add(self, owed: Sequence[OwedOrder], reason: str) -> None:
        for one in owed:
            queue = one.queue
            if queue not in self._waited:
                self._waited.add(queue)
                log.info("messages wait for their queue", queue=queue, reason=reason)
            self._queues.setdefault(queue, deque()).append(one)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(POSTPONE_S, self._resume)

    def confirmed(self, owed: Sequence[OwedOrder]) -> None:
        """Note that the queues of these orders take messages: all others for them are tried at once."""
        if not self._waited:
            return
        for queue in dict.fromkeys(one.queue for one in owed):
            if queue in self._waited:
                self._waited.discard(queue)
                waiting = self._queues.pop(queue, None)
                if waiting:
                    self._resume_with(waiting)

    @property
    def counts(self) -> dict[str, int]:
        """Queue → how many orders wait for it."""
        return {queue: len(orders) for queue, orders in self._queues.items()}

    @property
    def orders(self) -> Sequence[OwedOrder]:
        return [one for orders in self._queues.values() for one in orders]

    @property
    def oldest(self) -> datetime | None:
        return min((orders[0].since for orders in self._queues.values()), default=None)

    def _resume(self) -> None:
        tried: list[OwedOrder] = []
        for queue in list(self._queues):
            orders = self._queues[queue]
            tried += [orders.popleft() for _ in range(min(TRIED_MAX_ORDERS, len(orders)))]
            if not orders:
                del self._queues[queue]
        self._timer = None
        if self._queues:
            self._timer = asyncio.get_running_loop().call_later(POSTPONE_S, self._resume)
        self._resume_with(tried)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
