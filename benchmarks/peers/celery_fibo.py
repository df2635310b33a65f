"""Celery on one Redis, Windmill's suite: a chain of immutable signatures, and a group, on ten prefork processes.

In Celery's favour: prefetch of 16 per process, no gossip, mingle or heartbeat, early acknowledgement, and the client
reads the results of a group together. A chain's results are read from its links, which the client has anyway.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import brokers
import driver
import fibonacci
from celery import Celery, chain, group
from celery.result import AsyncResult

PORT = driver.port_of("redis")
URL = f"redis://127.0.0.1:{PORT}/0"

app = Celery("bench", broker=URL, backend=URL)
app.conf.update(worker_prefetch_multiplier=16, worker_hijack_root_logger=False)
compute = app.task(name="fibo")(fibonacci.fibo)


class CeleryClient:
    def chain(self, length: int, n: int) -> list[int]:
        last: AsyncResult | None = chain(compute.si(n) for _ in range(length)).apply_async()
        assert last is not None
        last.get(timeout=driver.PATIENCE)
        results = []
        while last is not None:
            results.append(last.get(timeout=driver.PATIENCE))
            last = last.parent
        return results

    def fan(self, width: int, n: int) -> list[int]:
        results: list[int] = group(compute.s(n) for _ in range(width)).apply_async().get(timeout=driver.PATIENCE)
        return results


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[CeleryClient]:
    worker = [sys.executable, "-m", "celery", "-A", "celery_fibo", "worker", "--pool=prefork"]
    worker += [f"--concurrency={fibonacci.WORKERS}", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    with (
        brokers.running("redis", directory, PORT),
        driver.process("celery", [*worker, "--loglevel=WARNING"], directory, cwd=Path(__file__).parent),
    ):
        try:
            yield CeleryClient()
        finally:
            gc.collect()  # results that die unsubscribe, for which Redis must still be there


if __name__ == "__main__":
    driver.program(["FIBO"], open_client, fibonacci.measured, ["celery", "kombu", "redis"], ["redis"])
