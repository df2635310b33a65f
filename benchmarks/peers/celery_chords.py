"""Celery on any broker: a chord of collects whose callback is the execute; results in Redis.

In Celery's favour: two prefork processes on two cores, prefetch of 16 per process, no gossip, mingle or heartbeat
between workers, and `get(follow_parents=False)` (by default a waiting `get` looks at every header task over and over).
Messages are acknowledged early, as by default: a worker that dies loses the tasks it was running.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import driver
import work
from celery import Celery, chord
from celery.result import AsyncResult


def app_on(broker: str, backend: str, **settings: Any) -> Celery:
    """The application with its two tasks, which client and worker share."""
    app = Celery("bench", broker=broker, backend=backend)
    app.conf.update(worker_prefetch_multiplier=16, worker_hijack_root_logger=False, **settings)
    app.task(name="collect")(work.collected)
    app.task(name="execute")(work.executed)
    return app


class CeleryClient:
    def __init__(self, app: Celery) -> None:
        self.collect, self.execute = app.tasks["collect"], app.tasks["execute"]

    def start(self, width: int) -> AsyncResult:
        return chord(self.collect.s(index) for index in range(width))(self.execute.s())

    def finish(self, result: AsyncResult, width: int) -> None:
        work.verify(result.get(timeout=driver.PATIENCE, follow_parents=False), width)

    def many(self, n: int) -> None:
        for result in [self.start(work.COLLECTS) for _ in range(n)]:
            self.finish(result, work.COLLECTS)

    def one(self) -> None:
        self.finish(self.start(work.COLLECTS), work.COLLECTS)

    def wide(self, width: int) -> None:
        self.finish(self.start(width), width)


@contextlib.contextmanager
def working(module: str, app: Celery, directory: Path) -> Iterator[CeleryClient]:
    """A client, and a worker of the application that `module` makes."""
    worker = [sys.executable, "-m", "celery", "-A", module, "worker", "--pool=prefork", "--concurrency=2"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING"]
    with driver.process("celery", worker, directory, cwd=Path(__file__).parent):
        try:
            yield CeleryClient(app)
        finally:
            gc.collect()  # results that die unsubscribe, for which Redis must still be there
