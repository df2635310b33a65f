"""Celery on Redis: a chord of collects whose callback is the execute. Broker and result backend are the same Redis.

In Celery's favour: two prefork processes on two cores, prefetch of 16 per process, no gossip, mingle or heartbeat
between workers, and `get(follow_parents=False)` (by default a waiting `get` looks at every header task over and over).
Messages are acknowledged early, as by default: a worker that dies loses the tasks it was running.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import driver
import work
from celery import Celery, chord
from celery.result import AsyncResult

PORT = int(os.environ.setdefault("BENCH_REDIS_PORT", str(driver.free_port())))
URL = f"redis://127.0.0.1:{PORT}/0"

app = Celery("bench", broker=URL, backend=URL)
app.conf.update(worker_prefetch_multiplier=16, worker_hijack_root_logger=False)


@app.task(name="collect")
def collect(index: int) -> dict[str, Any]:
    return work.collected(index)


@app.task(name="execute")
def execute(results: list[dict[str, Any]]) -> dict[str, int]:
    return work.executed(results)


def start(width: int) -> AsyncResult:
    return chord(collect.s(index) for index in range(width))(execute.s())


def finish(result: AsyncResult, width: int) -> None:
    work.verify(result.get(timeout=driver.PATIENCE, follow_parents=False), width)


class CeleryClient:
    def many(self, n: int) -> None:
        for result in [start(work.COLLECTS) for _ in range(n)]:
            finish(result, work.COLLECTS)

    def one(self) -> None:
        finish(start(work.COLLECTS), work.COLLECTS)

    def wide(self, width: int) -> None:
        finish(start(width), width)


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[CeleryClient]:
    here = Path(__file__).parent
    worker = [sys.executable, "-m", "celery", "-A", "celery_redis", "worker", "--pool=prefork", "--concurrency=2"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING"]
    with driver.redis_server(PORT, directory), driver.process("celery", worker, directory, cwd=here):
        try:
            yield CeleryClient()
        finally:
            gc.collect()  # results that die unsubscribe, for which Redis must still be there


if __name__ == "__main__":
    driver.run(open_client, ["celery", "kombu", "redis"])
