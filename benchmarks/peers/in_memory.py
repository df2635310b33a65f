"""Orchestrations in the client's memory, for peers that carry messages and leave the rest to their user.

Each orchestration sends its collects, waits until all have answered on one queue of results, sends the execute with
what they found, and waits for its answer. Nothing of it survives the client. At most 500 are in flight at once, and at
most 50 messages are being sent at once: without such gates a client of Redis was seen to run out of connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import driver
import uvloop
import work

IN_FLIGHT = 500
SENDING = 50
COLLECT, EXECUTE, RESULTS = "collect", "execute", "results"

Send = Callable[[str, dict[str, Any]], Awaitable[Any]]


def collect(message: dict[str, Any]) -> dict[str, Any]:
    """What a worker answers to a collect."""
    return {"id": message["id"], "index": message["index"], "result": work.collected(message["index"])}


def execute(message: dict[str, Any]) -> dict[str, Any]:
    """What a worker answers to an execute."""
    return {"id": message["id"], "outcome": work.executed(message["results"])}


class Orchestrations:
    """`send(queue, message)` returns once the broker has the message."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._numbers = itertools.count()
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)
        self._sending = asyncio.Semaphore(SENDING)
        self._collecting: dict[int, tuple[int, dict[int, Any], asyncio.Future[list[Any]]]] = {}
        self._executing: dict[int, asyncio.Future[dict[str, int]]] = {}

    async def answered(self, message: dict[str, Any]) -> None:
        """One answer, in whatever order. One that comes twice counts once."""
        number = message["id"]
        if "outcome" in message:
            executing = self._executing.get(number)
            if executing is not None and not executing.done():
                executing.set_result(message["outcome"])
        elif number in self._collecting:
            width, found, complete = self._collecting[number]
            found[message["index"]] = message["result"]
            if len(found) == width and not complete.done():
                complete.set_result([found[index] for index in range(width)])

    async def orchestrate(self, width: int) -> None:
        async with self._in_flight:
            number, loop = next(self._numbers), asyncio.get_running_loop()
            complete: asyncio.Future[list[Any]] = loop.create_future()
            self._collecting[number] = (width, {}, complete)
            await asyncio.gather(*(self._gated(COLLECT, {"id": number, "index": index}) for index in range(width)))
            results = await complete
            del self._collecting[number]
            self._executing[number] = executed = loop.create_future()
            await self._gated(EXECUTE, {"id": number, "results": results})
            work.verify(await executed, width)
            del self._executing[number]

    async def _gated(self, queue: str, message: dict[str, Any]) -> None:
        async with self._sending:
            await self._send(queue, message)


class InMemoryClient:
    def __init__(self, runner: asyncio.Runner, orchestrations: Orchestrations) -> None:
        self.runner = runner
        self.orchestrations = orchestrations

    def many(self, n: int) -> None:
        async def all_of_them() -> None:
            await asyncio.gather(*(self.orchestrations.orchestrate(work.COLLECTS) for _ in range(n)))

        self.runner.run(all_of_them())

    def one(self) -> None:
        self.runner.run(self.orchestrations.orchestrate(work.COLLECTS))

    def wide(self, width: int) -> None:
        self.runner.run(self.orchestrations.orchestrate(width))


@contextlib.contextmanager
def working(
    program: str, url: str, connected: Callable[[str], AbstractAsyncContextManager[Orchestrations]], directory: Path
) -> Iterator[InMemoryClient]:
    """A client on uvloop, and `program worker URL` in another process; both use the broker at `url`."""
    worker = [sys.executable, program, "worker", url]
    with (
        driver.process("worker", worker, directory),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        context = connected(url)
        orchestrations = runner.run(context.__aenter__())
        try:
            yield InMemoryClient(runner, orchestrations)
        finally:
            runner.run(context.__aexit__(None, None, None))
