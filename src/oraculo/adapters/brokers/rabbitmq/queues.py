"""Which queues there are, and making those that are not.

A queue that exists is used as it is. It is never declared before it was looked for, because a declaration that differs
in anything closes the channel; so does looking for what is not there, hence a channel for nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable
from typing import Any

import structlog

from oraculo.adapters.brokers.rabbitmq.link import ChannelGoneError, Lane, Link
from oraculo.adapters.brokers.rabbitmq.url import QUORUM
from oraculo.errors import BrokerUnavailableError
from oraculo.wire import names

log = structlog.get_logger("oraculo.broker")

NOT_FOUND, LOCKED, DIFFERS = 404, 405, 406
EXCHANGE = "amq.direct"  # which every server has
DELIVERY_LIMIT = 100  # a safety net: the poison counter that counts is the orchestrator's


class Queues:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._quorum = link.options.queue_type == QUORUM
        self._seconds = link.options.confirm_timeout
        self._lane: Lane | None = None
        self._one_at_a_time = asyncio.Lock()

    async def waiting(self, queue: str) -> int | None:
        """Messages that are ready in it; None when there is no such queue."""
        try:
            return await self._declare(queue, passive=True)
        except ChannelGoneError as gone:
            if gone.code == NOT_FOUND:
                return None
            raise

    async def ensure(self, queue: str) -> None:
        """It exists when this returns."""
        if await self.waiting(queue) is not None:
            return
        arguments = {}
        if self._quorum:
            arguments["x-queue-type"] = QUORUM
            if not queue.endswith(names.DLQ):
                await self.ensure(names.dead_letter_queue(queue))
                arguments |= _net(queue)
        try:
            await self._declare(queue, durable=True, arguments=arguments)
        except ChannelGoneError as gone:
            if gone.code != DIFFERS:  # somebody else made it in this instant
                raise
        else:
            await self._write_down(queue)

    async def prepare(self, queues: Iterable[str], seconds: float) -> None:
        """They exist when this returns, if that can be had in time."""
        try:
            async with asyncio.timeout(seconds):
                for queue in queues:
                    await self.ensure(queue)
        except (BrokerUnavailableError, TimeoutError) as error:
            log.warning("a queue for answers could not be made", broker="rabbitmq", reason=str(error) or "too slow")

    async def kind(self, queue: str) -> str:
        """`quorum`, `classic` (and durable) or `transient`; of a queue that does not exist, what it would become."""
        if await self.waiting(queue) is None:
            return self._link.options.queue_type
        try:
            await self._declare(queue, durable=True)
        except ChannelGoneError as gone:
            if gone.code != DIFFERS:
                raise
            kind = re.search(r"'x-queue-type'.*'(quorum|stream)'", str(gone))
            return QUORUM if kind and kind[1] == QUORUM else "transient"
        return "classic"

    async def _declare(self, queue: str, **how: Any) -> int:
        async with self._one_at_a_time:
            lane = await self._open()
            frame = await lane.call(lane.channel.queue_declare, queue, seconds=self._seconds, **how)
            return int(frame.method.message_count)

    async def _write_down(self, queue: str) -> None:
        """A server before 4.0 keeps the end of its last entry about queues in memory for up to two seconds. If it is
        killed then, it forgets a new queue with all that was confirmed in it; any further entry pushes it to the disk.
        One who may not bind has to do without."""
        async with self._one_at_a_time:
            with contextlib.suppress(ChannelGoneError):
                lane = await self._open()
                for entry in (lane.channel.queue_bind, lane.channel.queue_unbind):
                    await lane.call(entry, queue, EXCHANGE, queue, seconds=self._seconds)

    async def _open(self) -> Lane:
        wire = await self._link.wire(self._seconds)
        lane = self._lane
        if lane is None or not lane.alive or lane.wire is not wire:
            lane = self._lane = Lane(wire)
            await lane.open(self._seconds)
        return lane


def _net(queue: str) -> dict[str, Any]:
    """What the broker itself gives up on is kept, with its dead letters as safe as its messages."""
    return {
        "x-delivery-limit": DELIVERY_LIMIT,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": names.dead_letter_queue(queue),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
