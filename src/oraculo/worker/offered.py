"""What a worker of a broker does with offers: orders in its own queue that it has to begin at once, or not at all."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import structlog

from oraculo.wire.offers import OfferClock
from oraculo.worker.answers import Handler
from oraculo.worker.transport import Job, Transport

log = structlog.get_logger("oraculo.worker")

PASSED_REMEMBERED = 100


class OfferTaker:
    """`begin` starts an order; `has_room` says whether another one can be begun."""

    def __init__(
        self,
        transport: Transport,
        handlers: Mapping[str, Handler],
        begin: Callable[[Handler, Job], None],
        has_room: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._handlers = handlers
        self._begin = begin
        self._has_room = has_room
        self._clock = OfferClock()
        self._passed: deque[int] = deque(maxlen=PASSED_REMEMBERED)  # hashes of what was passed over

    async def take(self, offers: Sequence[Job]) -> bool:
        """Begin what can be begun, and pass over the rest: it goes elsewhere when its time is over. True when something
        was begun."""
        passed: list[Job] = []
        for job in offers:
            handler = self._handlers.get(job.queue)
            if job.offer is None:
                # It was begun here before: nobody else has it, so it waits for room here. Unless it came twice while
                # this process stood still, and was passed over a moment ago.
                late = hash(job.body) in self._passed
            else:
                late = self._clock.is_late(job.offer, asyncio.get_running_loop().time())
            if handler is not None and not late and (job.offer is None or self._has_room()):
                self._begin(handler, job)
                continue
            if late:
                log.warning("offer passed over: it came after its end", queue=job.queue)
            passed.append(job)
            self._passed.append(hash(job.body))
        await self._transport.pass_over(passed)
        await asyncio.sleep(0)  # those that were begun are listed as such from here on
        return len(passed) < len(offers)
