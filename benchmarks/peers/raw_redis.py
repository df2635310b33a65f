"""Raw Redis Streams with redis-py and hiredis: a pipeline of XADDs; XREADGROUP and one XACK for what it brought."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import raw
import redis

GROUP = "raw"


class RedisLoop:
    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url, socket_timeout=None)
        self.redis.xgroup_create(raw.QUEUE, GROUP, id="0", mkstream=True)

    def publish(self, n: int) -> None:
        for size in raw.batches(n):
            with self.redis.pipeline(transaction=False) as pipe:
                for _ in range(size):
                    pipe.xadd(raw.QUEUE, {"body": raw.BODY})
                pipe.execute()

    def consume(self, n: int) -> None:
        left = n
        while left:
            ((_, entries),) = self.redis.xreadgroup(GROUP, "one", {raw.QUEUE: ">"}, count=raw.BATCH, block=0)
            left -= self.redis.xack(raw.QUEUE, GROUP, *(number for number, _ in entries))


@contextlib.contextmanager
def opened(directory: Path) -> Iterator[RedisLoop]:
    with brokers.running("redis", directory) as server:
        loop = RedisLoop(server.url)
        try:
            yield loop
        finally:
            loop.redis.close()


if __name__ == "__main__":
    raw.run(opened, ["redis", "hiredis"], "redis")
