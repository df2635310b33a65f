"""DBOS on any database: one workflow per orchestration, its steps gathered asynchronously, all in this one process.

In DBOS's favour: direct asynchronous steps (queues are slower), and a gate on what is in flight: 50 workflows (400 were
slower in one trial), 200 steps of a wide one (an ungated 10,000 was seen to exhaust SQLAlchemy's connection pool).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import work
from dbos import DBOS, DBOSConfig

WORKFLOWS = 50
STEPS = 200


@DBOS.step()
async def collect(index: int) -> dict[str, Any]:
    return work.collected(index)


@DBOS.step()
async def execute(results: list[dict[str, Any]]) -> dict[str, int]:
    return work.executed(results)


@DBOS.workflow()
async def orchestration(width: int) -> dict[str, int]:
    gate = asyncio.Semaphore(STEPS)

    async def gated(index: int) -> dict[str, Any]:
        async with gate:
            return await collect(index)

    return await execute(await asyncio.gather(*(gated(index) for index in range(width))))


class DbosClient:
    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner

    async def orchestrate(self, width: int) -> None:
        work.verify(await orchestration(width), width)

    def many(self, n: int) -> None:
        async def all_of_them() -> None:
            gate = asyncio.Semaphore(WORKFLOWS)

            async def gated() -> None:
                async with gate:
                    await self.orchestrate(work.COLLECTS)

            await asyncio.gather(*(gated() for _ in range(n)))

        self.runner.run(all_of_them())

    def one(self) -> None:
        self.runner.run(self.orchestrate(work.COLLECTS))

    def wide(self, width: int) -> None:
        self.runner.run(self.orchestrate(width))


@contextlib.contextmanager
def launched(database: str) -> Iterator[DbosClient]:
    config: DBOSConfig = {"name": "bench", "system_database_url": database, "log_level": "ERROR"}
    logging.disable(logging.WARNING)
    with asyncio.Runner() as runner:
        DBOS(config=config)
        DBOS.launch()
        try:
            yield DbosClient(runner)
        finally:
            DBOS.destroy()
