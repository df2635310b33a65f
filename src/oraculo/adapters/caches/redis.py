"""Redis as a cache: one server (`redis://…`), or a cluster (`host:port,host:port`).

It is asked on the way of requests, so it may cost them nothing when it is away: after a failure it is left alone for a
while.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

import structlog

from oraculo.errors import MissingExtraError

try:
    from redis.asyncio import Redis, RedisCluster
    from redis.asyncio.cluster import ClusterNode
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
except ModuleNotFoundError as error:
    raise MissingExtraError("ORACULO_CACHE", "cache") from error

log = structlog.get_logger("oraculo.cache")

T = TypeVar("T")
PATIENCE = 0.25  # seconds for an answer
PAUSE = 5.0  # seconds without it after a failure
PREFIX = "oraculo:"

_TURN = """
local owner = redis.call('GET', KEYS[1])
if owner == false or owner == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0"""


class RedisCache:
    def __init__(self, where: str) -> None:
        patience: dict[str, Any] = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE}
        if "://" in where:
            self._redis: Any = Redis.from_url(where, retry=Retry(NoBackoff(), 0), **patience)
        else:
            nodes = [node.strip().rpartition(":") for node in where.split(",")]
            self._redis = RedisCluster(
                startup_nodes=[ClusterNode(host, int(port)) for host, _, port in nodes], **patience
            )
        self._away_until = 0.0
        self.hits = self.misses = self.failures = 0

    async def get(self, key: str) -> bytes | None:
        found = await self._ask(self._redis.get(PREFIX + key) if self._there else None)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return cast("bytes | None", found)

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        await self._ask(self._redis.set(PREFIX + key, value, px=int(seconds * 1000)) if self._there else None)

    async def turn(self, name: str, owner: str, seconds: float) -> bool:
        asked = self._redis.eval(_TURN, 1, f"{PREFIX}turn:{name}", owner, int(seconds * 1000)) if self._there else None
        return bool(await self._ask(asked) != 0)

    async def close(self) -> None:
        await self._redis.aclose()

    @property
    def _there(self) -> bool:
        return time.monotonic() >= self._away_until

    async def _ask(self, question: Awaitable[Any] | None) -> Any:
        if question is None:
            return None
        try:
            answer = await question
        except (RedisError, OSError) as error:
            if self._away_until == 0:
                log.warning(
                    "the cache is away; everything goes on without it", error=str(error) or type(error).__name__
                )
            self._away_until = time.monotonic() + PAUSE
            self.failures += 1
            return None
        if self._away_until:
            log.info("the cache is back")
            self._away_until = 0.0
        return answer
