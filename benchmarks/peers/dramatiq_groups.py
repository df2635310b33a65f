"""Dramatiq on any broker: a group of collects with a completion callback, which is the execute; results in Redis.

A Dramatiq callback is told only that the group is complete. So that its fan-in receives the results like every other
peer's, the collects carry predictable message ids and the execute reads their results in one Redis pipeline. Results
must be stored before the group's counter drops, hence `Results` is added after `GroupCallbacks` (they run in reverse).

In Dramatiq's favour: two processes of eight threads, and no socket timeout (redis-py's default breaks long waits).
"""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dramatiq
import driver
import redis
import work
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as RateLimiterBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend as ResultBackend


class DramatiqClient:
    """Made by client and worker alike: it registers both actors with the broker."""

    def __init__(self, broker: dramatiq.Broker, redis_port: int) -> None:
        self.store = redis.Redis(host="127.0.0.1", port=redis_port, socket_timeout=None)
        self.results = ResultBackend(client=self.store)
        broker.add_middleware(GroupCallbacks(RateLimiterBackend(client=self.store)))
        broker.add_middleware(Results(backend=self.results))
        dramatiq.set_broker(broker)
        self.collect = dramatiq.actor(work.collected, actor_name="collect", store_results=True)
        self.execute = dramatiq.actor(self.executed, actor_name="execute", store_results=True)

    def executed(self, group: str, width: int) -> dict[str, int]:
        with self.store.pipeline(transaction=False) as pipe:
            for index in range(width):
                pipe.lindex(self.results.build_message_key(self.message(group, index)), 0)
            stored = pipe.execute()
        return work.executed([self.results.unwrap_result(self.results.encoder.decode(data)) for data in stored])

    def message(self, group: str, index: int) -> dramatiq.Message[Any]:
        return dramatiq.Message(
            queue_name=self.collect.queue_name,
            actor_name=self.collect.actor_name,
            args=(index,),
            kwargs={},
            options={},
            message_id=f"{group}-{index}",
        )

    def start(self, width: int) -> dramatiq.Message[Any]:
        group = secrets.token_hex(8)
        callback = self.execute.message(group, width)
        fan_out = dramatiq.group([self.message(group, index) for index in range(width)])
        fan_out.add_completion_callback(callback)
        fan_out.run()
        return callback

    def finish(self, callback: dramatiq.Message[Any], width: int) -> None:
        outcome = callback.get_result(backend=self.results, block=True, timeout=int(driver.PATIENCE * 1000))
        work.verify(outcome, width)

    def many(self, n: int) -> None:
        for callback in [self.start(work.COLLECTS) for _ in range(n)]:
            self.finish(callback, work.COLLECTS)

    def one(self) -> None:
        self.finish(self.start(work.COLLECTS), work.COLLECTS)

    def wide(self, width: int) -> None:
        self.finish(self.start(width), width)


@contextlib.contextmanager
def working(module: str, directory: Path) -> Iterator[None]:
    """A worker of the broker and actors that `module` makes."""
    worker = [sys.executable, "-m", "dramatiq", module, "--processes", "2", "--threads", "8"]
    with driver.process("dramatiq", worker, directory, cwd=Path(__file__).parent):
        yield
