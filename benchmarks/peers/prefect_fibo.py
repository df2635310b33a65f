"""Prefect with a server of its own on SQLite, Windmill's suite: a flow that calls its tasks one after another, and one
that maps them over ten threads.

In Prefect's favour: the flow runs in the client's own process, so that no task crosses to another one; results stay in
memory; logs are not sent to the server; no analytics, no services of the server that a flow does not need.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import driver
import fibonacci

SETTINGS = {
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_SERVER_LEVEL": "ERROR",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    "DO_NOT_TRACK": "1",
}


class PrefectClient:
    def __init__(self) -> None:
        import prefect
        from prefect.task_runners import ThreadPoolTaskRunner

        task = prefect.task(fibonacci.fibo, name="fibo")

        def chained(length: int, n: int) -> list[int]:
            return [task(n) for _ in range(length)]

        def fanned(width: int, n: int) -> list[int]:
            found: Any = task.map([n] * width)
            return [future.result() for future in found]

        self._chain = prefect.flow(chained, name="chain")
        self._fan = prefect.flow(fanned, name="fan", task_runner=ThreadPoolTaskRunner(max_workers=fibonacci.WORKERS))

    def chain(self, length: int, n: int) -> list[int]:
        results: list[int] = self._chain(length, n)
        return results

    def fan(self, width: int, n: int) -> list[int]:
        results: list[int] = self._fan(width, n)
        return results


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[PrefectClient]:
    port = driver.free_port()
    os.environ |= SETTINGS | {
        "PREFECT_HOME": str(directory / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{directory / 'prefect.db'}",
    }
    server = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with driver.process("prefect", server, directory) as running:
        driver.wait_for_port(port, running, 180)
        yield PrefectClient()


if __name__ == "__main__":
    driver.program(["FIBO"], open_client, fibonacci.measured, ["prefect"], [])
