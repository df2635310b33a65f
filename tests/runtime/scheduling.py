"""A whole orchestrator with a scheduler, and workers over leases, on a virtual clock: minutes cost milliseconds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

import orjson

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.adapters.stores.sqlite.workers import SqliteWorkers
from oraculo.core.access import LOCAL
from oraculo.core.events import Event
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.core.ticket_id import ticket_id
from oraculo.engines.local import local_engine
from oraculo.ports.durations import DurationEstimates
from oraculo.ports.work import Work
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.lease import Lease
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.requests import RequestIntake
from oraculo.runtime.scheduler.people import Factor, KnownWorkers, Marks, no_factor, no_marks
from oraculo.runtime.scheduler.preempting import PreemptionOptions
from oraculo.runtime.scheduler.scheduler import LeaseScheduler, SchedulerOptions
from oraculo.runtime.workers import WorkerBook
from oraculo.simulation import loop
from oraculo.simulation.loop import EPOCH, VirtualLoop, wall_clock
from oraculo.wire import names, requests
from oraculo.wire.requests import Defaults
from oraculo.wire.worker_messages import Registration

T = TypeVar("T")
QUEUE = "escavador_a"
LEASE = timedelta(seconds=60)


@dataclass
class Shop:
    """`did` is which worker did which tickets; `held` how many orders a worker has."""

    store: SqliteStore
    broker: MemoryBroker
    clock: MonotonicClock
    engine: Kernel
    intake: RequestIntake
    leases: HttpLeases
    registry: WorkerBook
    scheduler: LeaseScheduler
    did: list[tuple[str, str]] = field(default_factory=list)

    async def submit(self, width: int, **more: Any) -> None:
        """A request for so many collections of one source."""
        sources = [{"fonte": "a", "parametros": {"n": n}, "timeout_s": 600} for n in range(width)]
        await self.intake.accept(requests.parse({"coletas": sources, **more}), actor=LOCAL)

    async def accept(self, document: dict[str, Any]) -> None:
        await self.intake.accept(requests.parse(document), actor=LOCAL)

    async def state(self, name: str) -> Orchestration:
        return rebuild((await self.store.load([(await self.store.locate([name]))[name]]))[await self.run_of(name)])

    async def run_of(self, name: str) -> int:
        return (await self.store.locate([name]))[name]

    async def events(self, name: str) -> list[Event]:
        run = await self.run_of(name)
        return [event for step in (await self.store.load([run]))[run] for event in step.events]

    async def ticket_ids(self, name: str) -> list[str]:
        state = await self.state(name)
        return [ticket_id(state.run, position) for position in range(len(state.tickets))]

    async def register(self, name: str, **said: Any) -> None:
        about = Registration.model_validate({"worker": name, "filas": [QUEUE], **said})
        await self.registry.register(DEFAULT_TENANT, about, LOCAL, "http")

    async def ask(self, worker: str, limit: int = 1, wait: float = 0.0) -> list[Lease]:
        return await self.leases.lease(QUEUE, limit, wait, worker, LEASE)

    async def answer(self, lease: Lease, ok: bool = True) -> None:
        order = orjson.loads(lease.delivery.body)
        self.did.append((lease.worker, order["ticket_id"]))
        said = {
            "correlation_id": order["correlation_id"],
            "ticket_id": order["ticket_id"],
            "tentativa": order.get("tentativa", 1),
            "tipo_evento": "resultado_coleta",
            "payload": {"fonte": "a", "status": "ok" if ok else "erro", "dados": 1, "erros": []},
            "timestamp": "2025-10-14T12:00:00Z",
        }
        work: Work = AnswerReader(None)(orjson.dumps(said), names.RESULTS)
        await self.engine.submit([work])
        await self.leases.answered(order["ticket_id"], said["tentativa"], work.command)

    async def work(self, name: str, takes_s: float, fails: Callable[[int], bool] = lambda _n: False) -> None:
        """Ask and work, one order at a time, for ever."""
        number = 0
        while True:
            for lease in await self.ask(name, wait=1.0):
                await asyncio.sleep(takes_s)
                await self.answer(lease, not fails(number))
                number += 1

    async def ended(self, *ids: str) -> None:
        while True:
            states = [await self.engine.state_of(one) for one in ids]
            if all(one is None or one.closed_at is not None for one in states):
                return
            await asyncio.sleep(0.2)

    @property
    def shares(self) -> Counter[str]:
        return Counter(worker for worker, _ in self.did)


@asynccontextmanager
async def shop(
    *,
    turn_s: float = 30.0,
    policies: Policies | None = None,
    factor: Factor = no_factor,
    marks: Marks = no_marks,
    store: SqliteStore | None = None,
    timeout_s: float = 30.0,
    durations: DurationEstimates | None = None,
    preemption: PreemptionOptions = PreemptionOptions(),
    options: SchedulerOptions | None = None,
) -> AsyncIterator[Shop]:
    """A shop that is open."""
    kept = store or SqliteStore(":memory:", threads=False)
    if store is None:
        await kept.open()
    assert isinstance(kept.worker_leases, SqliteWorkers)
    virtual = asyncio.get_running_loop().time
    kept.worker_leases.now = lambda: round((EPOCH + virtual()) * 1_000_000)
    broker, clock = MemoryBroker(), MonotonicClock()
    asked = policies or Policies()
    engine = local_engine(KernelPorts(kept, broker, clock, policies=asked), KernelOptions())
    intake = RequestIntake(engine, kept, clock, Defaults(), govern=asked.govern)
    leases = HttpLeases(broker, clock, engine.state)
    submit = partial(engine.submit, piecewise=True)
    registry = WorkerBook(
        kept.worker_leases,
        clock,
        kept,
        engine.state,
        submit,
        timeout_s=timeout_s,
        held=leases.holders,
        take_back=leases.take_back,
    )
    leases.registry = registry
    registry.beat_most_s = preemption.grace_s / 2 if preemption.enabled else None
    options = options or SchedulerOptions(turn_s, preemption=preemption)
    known = KnownWorkers(leases.workers, clock, registry, factor, marks)
    scheduler = leases.scheduler = LeaseScheduler(
        broker, clock, known, engine.state, submit, asked, options, Random(7), durations, registry.tell_stop
    )
    await engine.start()
    beside = [asyncio.create_task(leases.run()), asyncio.create_task(registry.run())]
    try:
        yield Shop(kept, broker, clock, engine, intake, leases, registry, scheduler)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await engine.stop(patience=1.0)
        if store is None:
            await kept.close()


def virtually(story: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Tell a story on a clock that costs nothing."""

    async def told(virtual: VirtualLoop) -> T:
        with wall_clock(lambda: EPOCH + virtual.time(), virtual.time):
            return await story(virtual)

    return loop.run(told)
