"""DBOS on PostgreSQL: one workflow per orchestration, handed in through a queue, its steps in the same process.

The process is worker and orchestrator in one, and PostgreSQL is what it has for a broker. Unfinished workflows are
recovered when the process starts again, which is how DBOS comes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import task_work
from dbos import DBOS, DBOSClient, DBOSConfig
from peer import Part, Program
from tools.servers.postgres import Postgres

QUEUE = "orchestrations"
VERSION = "1"
gate = threading.BoundedSemaphore(task_work.CONCURRENCY)


def gated(work: Any, *arguments: Any) -> Any:
    with gate:
        return work(*arguments)


@DBOS.step()
async def collect(orchestration: str, index: int) -> dict[str, Any]:
    return await asyncio.to_thread(gated, task_work.collect, orchestration, index)


@DBOS.step()
async def execute(orchestration: str, results: list[dict[str, Any]]) -> dict[str, int]:
    return await asyncio.to_thread(gated, task_work.execute, orchestration, results)


@DBOS.workflow()
async def orchestration(name: str) -> dict[str, int]:
    results = await asyncio.gather(*(collect(name, index) for index in range(task_work.COLLECTS)))
    return await execute(name, results)


class DbosPeer:
    packages = ("dbos", "SQLAlchemy", "psycopg")

    def __init__(self, folder: Path, variant: str) -> None:
        server = Postgres(folder / "postgres")
        self.url = server.database("dbos")
        app = Program("dbos", [sys.executable, "dbos_peer.py", self.url], folder)
        self.parts: dict[str, Part] = {"broker": server, "orchestrator": app, "worker": app}
        self.settings = {"queue polling_interval_sec": "0.1", "workflows at once": str(task_work.CONCURRENCY)}
        self._client: DBOSClient | None = None

    @property
    def client(self) -> DBOSClient:
        if self._client is None:
            self._client = DBOSClient(system_database_url=self.url, retry_connection_errors=False)
        return self._client

    def submit(self, name: str) -> None:
        self.client.enqueue(
            {"queue_name": QUEUE, "workflow_name": "orchestration", "workflow_id": name, "app_version": VERSION}, name
        )

    def outcome(self, name: str) -> tuple[str, Any] | None:
        status = self.client.retrieve_workflow(name).get_status()
        if status.status == "SUCCESS":
            return "ended", status.output
        return ("failed", str(status.error)) if status.status not in ("PENDING", "ENQUEUED") else None

    def close(self) -> None:
        if self._client is not None:
            self._client.destroy()


def serve(url: str) -> None:
    config: DBOSConfig = {
        "name": "faults",
        "system_database_url": url,
        "application_version": VERSION,
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=task_work.CONCURRENCY, polling_interval_sec=0.1)
    threading.Event().wait()


if __name__ == "__main__":
    os.environ.setdefault(task_work.LEDGER, "ledger")
    serve(sys.argv[1])
