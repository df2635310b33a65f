"""What the tests of the Redis adapter share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import redis
from tools.servers.server import Server

from oraculo.adapters.brokers.redis_streams import RedisBroker
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from waiting import DEADLINE_S


@asynccontextmanager
async def opened(server: Server | str, **options: object) -> AsyncIterator[RedisBroker]:
    url = server if isinstance(server, str) else server.url
    query = "&".join(f"{name}={value}" for name, value in options.items())
    broker = RedisBroker(f"{url}?{query}" if query else url)
    try:
        yield broker
    finally:
        await broker.close()


def plain(server: Server | str) -> redis.Redis:
    """A plain client, for looking behind the scenes."""
    return redis.Redis.from_url(server if isinstance(server, str) else server.url)


def blocked(client: redis.Redis) -> list[dict[str, str]]:
    """The connections that wait for a message."""
    return [one for one in client.client_list() if "b" in one["flags"]]


def reading(client: redis.Redis, queue: str) -> bool:
    """Somebody waits, and has made the group of this queue. Other tests wait on the same server."""
    try:
        return bool(client.xinfo_groups(queue) and blocked(client))
    except redis.ResponseError:  # not even the stream is there
        return False


def messages(queue: str, bodies: Iterable[bytes]) -> list[Outgoing]:
    return [Outgoing(queue, body, f"id-{n}") for n, body in enumerate(bodies)]


async def take(broker: RedisBroker, queue: str, count: int, within: float = DEADLINE_S) -> list[Delivery]:
    """Exactly `count`; it tries again while the server is away."""
    taken: list[Delivery] = []
    async with asyncio.timeout(within):
        while len(taken) < count:
            try:
                taken += await broker.fetch(queue, limit=count - len(taken), wait=within)
            except BrokerUnavailableError:
                await asyncio.sleep(0.02)
    return taken


async def ack(broker: RedisBroker, deliveries: Iterable[Delivery]) -> None:
    await broker.settle([Settlement(delivery) for delivery in deliveries])


async def published(broker: RedisBroker, outgoing: list[Outgoing], within: float = DEADLINE_S) -> None:
    """Again and again until it is confirmed."""
    async with asyncio.timeout(within):
        while outgoing:
            outgoing = list((await broker.publish(outgoing)).unconfirmed)
            if outgoing:
                await asyncio.sleep(0.02)
