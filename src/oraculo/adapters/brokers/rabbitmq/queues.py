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

from oraculo.adapters.brokers.rabbitmq.channel import Channel, ChannelGoneError
from oraculo.adapters.brokers.rabbitmq.connection import Connection
from oraculo.adapters.brokers.rabbitmq.url import QUORUM
from oraculo.errors import BrokerUnavailableError
from oraculo.wire import names

log = structlog.get_logger("oraculo.broker")

NOT_FOUND, PRECONDITION_FAILED = 404, 406
EXCHANGE = "amq.direct"  # which every server has
DELIVERY_LIMIT = 100  # a safety net: the poison counter that counts is the orchestrator's


class Queues:
    """Looks for queues and makes them, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._quorum = connection.options.queue_type == QUORUM
        self._timeout_s = connection.options.confirm_timeout
        self._channel: Channel | None = None
        self._one_at_a_time = asyncio.Lock()

    async def waiting(self, queue: str) -> int | None:
        """Messages that are ready in it; None when there is no such queue."""
        found = await self.standing(queue)
        return None if found is None else found[0]

    async def standing(self, queue: str) -> tuple[int, int] | None:
        """Messages that are ready in it, and its consumers; None when there is no such queue."""
        try:
            return await self._declare(queue, passive=True)
        except ChannelGoneError as gone:
            if gone.code == NOT_FOUND:
                return None
            raise

    async def ensure(self, queue: str) -> None:
        """Make the queue unless it exists."""
        if await self.waiting(queue) is not None:
            return
        arguments = {}
        if self._quorum:
            arguments["x-queue-type"] = QUORUM
            if not queue.endswith(names.DLQ):
                await self.ensure(names.dead_letter_queue(queue))
                arguments |= _quorum_arguments(queue)
        try:
            await self._declare(queue, durable=True, arguments=arguments)
        except ChannelGoneError as gone:
            if gone.code != PRECONDITION_FAILED:  # another process made it in this instant
                raise
        else:
            await self._flush_definitions(queue)

    async def prepare(self, queues: Iterable[str], seconds: float) -> None:
        """Make these queues unless they exist, as far as that can be done within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                for queue in queues:
                    await self.ensure(queue)
        except (BrokerUnavailableError, TimeoutError) as error:
            log.warning("queue for answers not made", broker="rabbitmq", reason=str(error) or "too slow")

    async def kind(self, queue: str) -> str:
        """`quorum`, `classic` (and durable) or `transient`; of a queue that does not exist, what it would become."""
        if await self.waiting(queue) is None:
            return self._connection.options.queue_type
        try:
            await self._declare(queue, durable=True)
        except ChannelGoneError as gone:
            if gone.code != PRECONDITION_FAILED:
                raise
            kind = re.search(r"'x-queue-type'.*'(quorum|stream)'", str(gone))
            return QUORUM if kind and kind[1] == QUORUM else "transient"
        return "classic"

    async def _declare(self, queue: str, **how: Any) -> tuple[int, int]:
        async with self._one_at_a_time:
            channel = await self._open()
            frame = await channel.call(channel.channel.queue_declare, queue, seconds=self._timeout_s, **how)
            return int(frame.method.message_count), int(frame.method.consumer_count)

    async def _flush_definitions(self, queue: str) -> None:
        """Push the record of a new queue to the server's disk.

        A server before 4.0 keeps the end of its last entry about queues in memory for up to two seconds. If killed
        then, it forgets a new queue with all that was confirmed in it; any further entry pushes it to the disk. A user
        who may not bind has to do without."""
        async with self._one_at_a_time:
            with contextlib.suppress(ChannelGoneError):
                channel = await self._open()
                for entry in (channel.channel.queue_bind, channel.channel.queue_unbind):
                    await channel.call(entry, queue, EXCHANGE, queue, seconds=self._timeout_s)

    async def _open(self) -> Channel:
        transport = await self._connection.transport(self._timeout_s)
        channel = self._channel
        if channel is None or not channel.alive or channel.transport is not transport:
            channel = self._channel = Channel(transport)
            await channel.open(self._timeout_s)
        return channel


def _quorum_arguments(queue: str) -> dict[str, Any]:
    """The arguments of a quorum queue: what the server itself gives up on is kept in the dead-letter queue."""
    return {
        "x-delivery-limit": DELIVERY_LIMIT,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": names.dead_letter_queue(queue),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
