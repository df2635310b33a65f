"""Redis as a cache: one server (`redis://…`), or `host:port`, one or several, of a cluster, with what logs in there.
One address alone may be that of a server as well as that of a cluster's node: it is asked which, when it is used first.

It is asked on the way of requests, so it may cost them nothing when it is away: after a failure it is left alone for a
while.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

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

ANSWER_TIMEOUT_S = 0.25  # seconds for an answer
FAILURE_PAUSE_S = 5.0  # seconds without it after a failure
KEY_PREFIX = "oraculo:"
_TIMEOUTS: dict[str, Any] = {"socket_timeout": ANSWER_TIMEOUT_S, "socket_connect_timeout": ANSWER_TIMEOUT_S}

_TURN_SCRIPT = """
local owner = redis.call('GET', KEYS[1])
if owner == false or owner == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0"""


class RedisCache:
    def __init__(self, where: str, *, password: str = "", tls: bool = False, pause_s: float = FAILURE_PAUSE_S) -> None:
        self._login: dict[str, Any] = {"password": password} if password else {}
        self._tls = tls
        self._pause_s = pause_s
        self._node = "" if "://" in where or "," in where else where  # may be a server alone, or one of a cluster
        if "://" in where or self._node:
            url = where if "://" in where else f"{'rediss' if tls else 'redis'}://{where}"
            self._redis: Any = Redis.from_url(url, retry=Retry(NoBackoff(), 0), **self._login, **_TIMEOUTS)
        else:
            self._redis = self._cluster(where)
        self._away_until = 0.0
        self.failures = 0

    async def get(self, key: str) -> bytes | None:
        return cast("bytes | None", await self._ask(lambda redis: redis.get(KEY_PREFIX + key)))

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        await self._ask(lambda redis: redis.set(KEY_PREFIX + key, value, px=int(seconds * 1000)))

    async def turn(self, name: str, owner: str, seconds: float) -> bool:
        key = f"{KEY_PREFIX}turn:{name}"
        return bool(await self._ask(lambda redis: redis.eval(_TURN_SCRIPT, 1, key, owner, int(seconds * 1000))) != 0)

    async def close(self) -> None:
        await self._redis.aclose()

    async def _ask(self, question: Callable[[Any], Awaitable[Any]]) -> Any:
        if time.monotonic() < self._away_until:
            return None
        try:
            if self._node:
                await self._look_for_a_cluster()
            answer = await question(self._redis)
        except (RedisError, OSError) as error:
            if self._away_until == 0:
                log.warning(
                    "the cache is away; everything goes on without it", error=str(error) or type(error).__name__
                )
            self._away_until = time.monotonic() + self._pause_s
            self.failures += 1
            return None
        if self._away_until:
            log.info("the cache is back")
            self._away_until = 0.0
        return answer

    async def _look_for_a_cluster(self) -> None:
        """Speak to the whole cluster when the only address given is one of its nodes."""
        told = await self._redis.info("cluster")
        node, self._node = self._node, ""
        if told.get("cluster_enabled"):
            alone, self._redis = self._redis, self._cluster(node)
            await alone.aclose()

    def _cluster(self, nodes: str) -> Any:
        found = [node.strip().rpartition(":") for node in nodes.split(",")]
        known = [ClusterNode(host, int(port)) for host, _, port in found]
        return RedisCluster(startup_nodes=known, ssl=self._tls, **self._login, **_TIMEOUTS)
