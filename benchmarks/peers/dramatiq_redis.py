"""Dramatiq on Redis: a group of collects with a completion callback, which is the execute; results in Redis.

A Dramatiq callback is told only that the group is complete. So that its fan-in receives the results like every other
peer's, the collects carry predictable message ids and the execute reads their results in one Redis pipeline. Results
must be stored before the group's counter drops, hence `Results` is added after `GroupCallbacks` (they run in reverse).

In Dramatiq's favour: two processes of eight threads, and no socket timeout (redis-py's default breaks long waits).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dramatiq
import driver
import redis
import work
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as RateLimiterBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend as ResultBackend

PORT = int(os.environ.setdefault("BENCH_REDIS_PORT", str(driver.free_port())))

store = redis.Redis(host="127.0.0.1", port=PORT, socket_timeout=None)
results = ResultBackend(client=store)
broker = RedisBroker(host="127.0.0.1", port=PORT, socket_timeout=None)
broker.add_middleware(GroupCallbacks(RateLimiterBackend(client=store)))
broker.add_middleware(Results(backend=results))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def collect(index: int) -> dict[str, Any]:
    return work.collected(index)


@dramatiq.actor(store_results=True)
def execute(group: str, width: int) -> dict[str, int]:
    with store.pipeline(transaction=False) as pipe:
        for index in range(width):
            pipe.lindex(results.build_message_key(collect_message(group, index)), 0)
        stored = pipe.execute()
    return work.executed([results.unwrap_result(results.encoder.decode(data)) for data in stored])


def collect_message(group: str, index: int) -> dramatiq.Message:
    return dramatiq.Message(
        queue_name=collect.queue_name,
        actor_name=collect.actor_name,
        args=(index,),
        kwargs={},
        options={},
        message_id=f"{group}-{index}",
    )


def start(width: int) -> dramatiq.Message:
    group = secrets.token_hex(8)
    callback = execute.message(group, width)
    fan_out = dramatiq.group([collect_message(group, index) for index in range(width)])
    fan_out.add_completion_callback(callback)
    fan_out.run()
    return callback


def finish(callback: dramatiq.Message, width: int) -> None:
    outcome = callback.get_result(backend=results, block=True, timeout=int(driver.PATIENCE * 1000))
    work.verify(outcome, width)


class DramatiqClient:
    def many(self, n: int) -> None:
        for callback in [start(work.COLLECTS) for _ in range(n)]:
            finish(callback, work.COLLECTS)

    def one(self) -> None:
        finish(start(work.COLLECTS), work.COLLECTS)

    def wide(self, width: int) -> None:
        finish(start(width), width)


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[DramatiqClient]:
    here = Path(__file__).parent
    worker = [sys.executable, "-m", "dramatiq", "dramatiq_redis", "--processes", "2", "--threads", "8"]
    with driver.redis_server(PORT, directory), driver.process("dramatiq", worker, directory, cwd=here):
        yield DramatiqClient()


if __name__ == "__main__":
    driver.run(open_client, ["dramatiq", "redis"])
