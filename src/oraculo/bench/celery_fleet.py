"""A Celery worker of two processes and beat, as a user would start them, for the engine `celery`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module

from oraculo.bench.processes import START_TIMEOUT_S, spawned
from oraculo.errors import OraculoError

WORKER_PROCESSES = 2
COMMAND = ("-m", "celery", "-A", "oraculo.engines.celery")
WORKER = (
    "worker",
    "-c",
    str(WORKER_PROCESSES),
    "-l",
    "error",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
)


@asynccontextmanager
async def celery_fleet(environment: Mapping[str, str]) -> AsyncIterator[None]:
    """It takes tasks when this yields."""
    async with AsyncExitStack() as stack:
        for arguments in (WORKER, ("beat", "-l", "error")):
            one = await spawned([sys.executable, *COMMAND, *arguments], {**environment, "LOG_LEVEL": "WARNING"})
            stack.push_async_callback(one.stop)
        app = import_module("oraculo.engines.celery").app
        until = time.monotonic() + START_TIMEOUT_S
        while not await asyncio.to_thread(app.control.ping, timeout=0.5):
            if time.monotonic() > until:
                raise OraculoError("the Celery worker did not start")
        yield


def prepare(environment: Mapping[str, str]) -> None:
    """The Celery application of this process is made of its environment, when it is first asked for."""
    os.environ.update(environment)
