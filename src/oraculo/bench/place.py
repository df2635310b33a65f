"""Where a workload runs: with the in-process broker and its workers, or on a server's broker with the workers in
processes of their own. The orchestrator is in this process either way, with a SQLite file (synchronous=FULL) unless
another store is named; with the engine `celery` there are Celery processes beside it, with `temporal` a server."""

from __future__ import annotations

import asyncio
import cProfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oraculo.adapters.brokers.connect import broker_of
from oraculo.bench import celery_fleet
from oraculo.bench.processes import WorkerProcess, worker_processes
from oraculo.bench.work import make_worker, worker
from oraculo.errors import OraculoError
from oraculo.runtime.tuning import tune
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire import names

MEMORY = "memory://"
READY_TIMEOUT_S = 30.0  # seconds until the engine has all that it needs


@dataclass(frozen=True, slots=True)
class Place:
    """`profile` is a folder for the profiles of the orchestrator and of the workers. `store` is an empty database."""

    broker: str = MEMORY
    worker_processes: int = 1
    profile: Path | None = None
    store: str = ""
    engine: str = "local"
    temporal: str = ""  # host:port
    tokens: str = "off"  # ORACULO_RESULT_TOKENS

    @property
    def embedded(self) -> bool:
        return self.broker == MEMORY

    def environment(self, folder: str) -> dict[str, str]:
        """Its settings; what it leaves is in the folder."""
        store = self.store or f"sqlite:///{Path(folder) / 'bench.db'}"
        host, _, port = self.temporal.rpartition(":")
        where = {"TEMPORAL_HOST": host, "TEMPORAL_PORT": port} if self.temporal else {}
        return {
            "ORACULO_STORE": store,
            "ORACULO_BROKER": self.broker,
            "ORACULO_ENGINE": self.engine,
            "ORACULO_RESULT_TOKENS": self.tokens,
            **where,
        }


@dataclass(slots=True)
class Stage:
    """What is up. `facts` belong to every figure that is measured on it."""

    oraculo: Oraculo
    facts: dict[str, Any]
    workers: list[WorkerProcess] = field(default_factory=list)
    profile: Path | None = None

    def worker_cpu(self) -> float | None:
        """Seconds of processor time that the worker processes have used; None when there are none, or no /proc."""
        used = [process.cpu() for process in self.workers]
        known = [seconds for seconds in used if seconds is not None]
        return sum(known) if known and len(known) == len(used) else None

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """What happens inside is profiled, when that was asked for."""
        if self.profile is None:
            yield
            return
        with cProfile.Profile() as profiler:
            yield
        profiler.dump_stats(self.profile / "orchestrator.prof")


@asynccontextmanager
async def opened(place: Place, *, workers: bool = True) -> AsyncIterator[Stage]:
    """Everything up in a temporary folder, with workers unless they are not wanted; nothing is left behind."""
    tune()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="oraculo-bench-"))
        environment = place.environment(folder)
        settings = load(environment, None)
        facts = await facts_of(place)
        inside = [make_worker()] if workers and place.embedded else []
        if place.engine == "celery":
            celery_fleet.prepare(environment)
        oraculo = await stack.enter_async_context(Oraculo(settings, workers=inside))
        async with asyncio.timeout(READY_TIMEOUT_S):
            while oraculo.status().outage is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        if place.engine == "celery":
            await stack.enter_async_context(celery_fleet.celery_fleet(environment))
        outside: list[WorkerProcess] = []
        if workers and not place.embedded:
            outside = await stack.enter_async_context(
                worker_processes(place.broker, place.worker_processes, place.profile)
            )
        yield Stage(oraculo, facts, outside, place.profile)


async def facts_of(place: Place) -> dict[str, Any]:
    """What belongs to every figure. The benchmark reads the orchestrator's own queues, so it must have the broker for
    itself: where messages wait already, it refuses."""
    broker = broker_of(place.broker)
    try:
        for queue in (names.RESULTS, names.REQUESTS, *worker.queues):
            waiting = (await broker.backlog(queue)).waiting
            if waiting:
                raise OraculoError(
                    f"{waiting} messages wait in {queue}: the benchmark needs a broker that nobody else uses"
                )
        facts: dict[str, Any] = {"broker": broker.scheme, "durability": await broker.durability()}
        if place.store:
            facts |= {"store": place.store.partition("://")[0]}
        if place.store or place.engine != "local":
            facts |= {"engine": place.engine}
    finally:
        await broker.close()
    return facts if place.embedded else {**facts, "worker_processes": place.worker_processes}
