"""The event loop of a process of a Celery worker, in a thread of its own, with one host on it.

Celery forks its processes, and tasks are plain functions: so the host is opened in the process that needs it, as soon
as that is there, and stays open from then on.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

import structlog
from celery import signals

log = structlog.get_logger("oraculo.celery")

T = TypeVar("T")
H = TypeVar("H", bound=AbstractAsyncContextManager[Any])
TASK_TIMEOUT_S = 50.0  # after which a task is given up and tried again, whatever it waits for
CLOSE_TIMEOUT_S = 10.0


class HostProcess(Generic[H]):
    """The loop of this process and the host that runs on it; made anew after a fork."""

    def __init__(self, make: Callable[[], H]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._host: H | None = None

    def call(self, work: Callable[[H], Coroutine[Any, Any, T]]) -> T:
        """Run it on the loop and wait for it, from the thread of a task. TimeoutError when that takes too long."""
        loop, host = self._ready()
        return self._run(loop, work(host), TASK_TIMEOUT_S)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def _ready(self) -> tuple[asyncio.AbstractEventLoop, H]:
        with self._lock:
            if self._pid != os.getpid():
                self._loop, self._host = None, None
                self._pid = os.getpid()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="oraculo", daemon=True).start()
            if self._host is None:
                host = self._make()
                self._run(self._loop, _enter(host), TASK_TIMEOUT_S)
                self._host = host
            return self._loop, self._host

    def open(self) -> None:
        """Open the host; when that fails the first task tries again."""
        try:
            self._ready()
        except Exception as error:
            log.warning("host not opened; the first task tries again", error=str(error) or type(error).__name__)

    def close(self) -> None:
        with self._lock:
            if self._loop is not None and self._host is not None and self._pid == os.getpid():
                self._run(self._loop, _leave(self._host), CLOSE_TIMEOUT_S)
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop, self._host = None, None

    def follow_celery(self) -> None:
        """Open with a process of the pool, and close with it."""

        @signals.worker_process_init.connect(weak=False)
        def _begin(**_: Any) -> None:
            """Not here and now: Celery gives a process that begins a few seconds."""
            threading.Thread(target=self.open, name="oraculo-open", daemon=True).start()

        @signals.worker_process_shutdown.connect(weak=False)
        @signals.worker_shutdown.connect(weak=False)
        def _shut_down(**_: Any) -> None:
            self.close()


async def _enter(host: AbstractAsyncContextManager[Any]) -> None:
    await host.__aenter__()


async def _leave(host: AbstractAsyncContextManager[Any]) -> None:
    await host.__aexit__(None, None, None)
