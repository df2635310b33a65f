"""Workers in processes of their own: `oraculo worker` on the benchmark's functions, as a user would start it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from oraculo.errors import OraculoError

START_TIMEOUT_S, STOP_TIMEOUT_S = 30.0, 30.0  # seconds that a worker may take


def processor_seconds(pid: int, *, ended_children: bool = False) -> float | None:
    """The processor time of a process so far, with that of its children that have ended or without; None where /proc
    does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11 : 15 if ended_children else 13])) / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class WorkerProcess:
    """What it says on standard error is shown only when it fails."""

    process: asyncio.subprocess.Process
    said: IO[bytes]

    def cpu(self) -> float | None:
        """Seconds of processor time used so far; None where /proc does not tell."""
        return processor_seconds(self.process.pid)

    async def ready(self) -> None:
        """It says so in one line on standard output."""
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                line = await self.process.stdout.readline()
        except TimeoutError:
            line = b""
        if not line:
            raise OraculoError(f"a worker process did not start: {self.last_words()}")

    def last_words(self) -> str:
        self.said.seek(0)
        return self.said.read().decode(errors="replace").strip()[-300:]

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        self.said.close()


@asynccontextmanager
async def worker_processes(broker: str, count: int, profile: Path | None) -> AsyncIterator[list[WorkerProcess]]:
    """`count` processes that take work when this yields. When one of them ends too early, so does what is inside."""
    started: list[WorkerProcess] = []
    owner = asyncio.current_task()
    assert owner is not None
    ended: list[str] = []

    async def watch(one: WorkerProcess) -> None:
        status = await one.process.wait()
        ended.append(f"a worker process ended with status {status} in the middle of the work: {one.last_words()}")
        owner.cancel()

    watchers: list[asyncio.Task[None]] = []
    try:
        for number in range(1, count + 1):
            started.append(await _start(broker, None if profile is None else profile / f"worker-{number}.prof"))
        for one in started:
            await one.ready()
        watchers = [asyncio.create_task(watch(one)) for one in started]
        yield started
    except asyncio.CancelledError:
        if not ended:
            raise
        owner.uncancel()
        raise OraculoError(ended[0]) from None
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        await asyncio.gather(*(one.stop() for one in started))


async def _start(broker: str, profile: Path | None) -> WorkerProcess:
    under = [] if profile is None else ["-m", "cProfile", "-o", str(profile)]
    command = [sys.executable, *under, "-m", "oraculo", "worker", "oraculo.bench.work:worker", "--json"]
    environment = {"ORACULO_BROKER": broker, "LOG_LEVEL": "WARNING"}
    return await spawned(command, environment, stdout=asyncio.subprocess.PIPE)


async def spawned(
    command: Sequence[str], environment: Mapping[str, str], stdout: int = asyncio.subprocess.DEVNULL
) -> WorkerProcess:
    said = TemporaryFile()  # noqa: SIM115 — it is closed when the process has stopped
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stdin=asyncio.subprocess.DEVNULL, stdout=stdout, stderr=said
    )
    return WorkerProcess(process, said)
