"""The orchestrator as the outside sees it: one process after another over the same store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast

from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL, Scope
from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.engines.local import local_engine
from oraculo.errors import OraculoError, StoreError
from oraculo.ports.broker import Delivery
from oraculo.ports.store import Store
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.ports.workers import WorkerLeases
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.breakers import BreakerBook, BreakerSink
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.ids import RunNumbers, oldest_run_at
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.observers import ObserverFanOut
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.lease import Lease
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.loops import Loops
from oraculo.runtime.project import Projections
from oraculo.runtime.requests import Accepted, RequestIntake
from oraculo.simulation.broker import Connection, ModelBroker
from oraculo.simulation.choice_watch import choose
from oraculo.simulation.faults import (
    BrokerDoor,
    Life,
    ModelNotifier,
    ProcessDiedError,
    SharedStoreDoor,
    StoreDoor,
)
from oraculo.simulation.forgers import model_tokens
from oraculo.simulation.offer_watch import make_offers
from oraculo.simulation.scene import Scene
from oraculo.simulation.shared_store import SharedDatabase
from oraculo.simulation.watch import HTTP, Watch
from oraculo.wire import mensagem, names, requests
from oraculo.wire.orders import OrderWriter
from oraculo.wire.requests import Defaults

T = TypeVar("T")

LEASE = timedelta(seconds=4)
REPLICA_LEASE = timedelta(seconds=3)
DWELL_S = 2.0  # that a broker which failed is left alone
PROBE_INTERVAL_S = 1.0
DEFAULTS = Defaults(retry_base_s=0.5, retry_cap_s=4.0)
RETRIES_A_SECOND = 3  # few, so that some have to wait


class _Numbers(RunNumbers):
    """The same numbers for the same seed, and others in the next life: it may begin within the same millisecond."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self._newest = 0

    def next(self, now: datetime) -> int:
        low = self._scene.rng.randrange(1 << 19)
        if self.node:  # the processes on a shared store have each their own
            low = self.node << 10 | low & 0x3FF
        self._newest = max(oldest_run_at(now) + low, self._newest + 1)
        return self._newest


@dataclass(slots=True)
class Up:
    """The parts of a life that is up."""

    life: Life
    engine: Kernel
    requests: RequestIntake
    leases: HttpLeases
    consumers: QueueConsumers
    beside: Loops
    clock: MonotonicClock
    answers: AnswerReader
    projections: Projections

    async def stop(self) -> None:
        await self.consumers.stop()
        await self.beside.stop()
        await self.projections.stop()
        await self.engine.stop(patience=3.0)


async def _probe(broker: FailoverBroker) -> None:
    """Look at every broker now and then, as the prober does."""
    while True:
        await asyncio.sleep(PROBE_INTERVAL_S)
        for name, member in broker.members.items():
            broker.probed(name, member.health().connected, "down")


class Process:
    """Starts a life, waits until it ends, starts the next one."""

    def __init__(
        self,
        scene: Scene,
        store: SqliteStore,
        watch: Watch,
        models: Sequence[ModelBroker],
        database: SharedDatabase | None = None,
        name: str = "",
    ) -> None:
        self.scene = scene
        self.store = store
        self.watch = watch
        self.models = models
        self.database = database
        self.name = name
        self.life: Life | None = None
        self.up: Up | None = None
        self.memory: MemoryBroker | None = None
        self.lives = 0
        self.inside: list[Callable[[Life, MemoryBroker], None]] = []  # workers that live in the process

    async def run(self) -> None:
        while True:
            self.lives += 1
            life = self.life = Life(self.scene, self.scene.next_life())
            try:
                await life.call(lambda life=life: self._boot(life))  # type: ignore[misc]
            except (ProcessDiedError, StoreError):
                life.kill("it did not start")
            else:
                await life.died.wait()
            self.up = None
            await self.scene.sleep(0.02, 2.0)

    async def _boot(self, life: Life) -> None:
        scene = self.scene
        inner: Connection | MemoryBroker | FailoverBroker
        if scene.dials.volatile:
            inner = self.memory = MemoryBroker()
        else:
            connections = [model.connect() for model in self.models]
            life.connections += connections
            inner = connections[0] if len(connections) == 1 else FailoverBroker(connections, dwell=DWELL_S)
        broker = BrokerDoor(life, inner, self.watch)
        store = self._store_of(life)
        clock = MonotonicClock()
        tokens = None if scene.forger is None else await model_tokens(clock)
        breakers = None if scene.breaker is None else BreakerBook(store, clock, scene.breaker)
        if breakers is not None:
            await breakers.refresh()
        projections = Projections(store, [] if breakers is None else [BreakerSink(breakers)], clock)
        ports = KernelPorts(
            store,
            broker,
            clock,
            ModelNotifier(life, self.watch),
            observers=ObserverFanOut([projections] if breakers is not None else []),
            breakers=breakers,
            writer=OrderWriter(issue=None if tokens is None else tokens.issue_for),
            tokens=tokens,
            numbers=_Numbers(scene),
        )
        engine = local_engine(ports, self._options())
        requests = RequestIntake(engine, store, clock, DEFAULTS)
        ports.children.bind(engine, requests)
        leases = HttpLeases(broker, clock, engine.state)
        registry = None
        if scene.chooses:
            workers = cast(WorkerLeases, StoreDoor(life, cast(Any, self.store.worker_leases), self.watch))
            registry = choose(scene, leases, broker, store, workers, clock, engine)
        consumers = QueueConsumers(broker, engine, leases.heard)
        answers = AnswerReader(tokens)
        consumers.answers(names.RESULTS, answers, scope=Scope.RESULT_WRITE, plain=True)
        consumers.requests(names.REQUESTS, requests.from_message, scope=Scope.RUN_SUBMIT)
        if scene.offers:
            make_offers(leases, broker, clock, engine, consumers, self.watch.choices.offers)
        self.watch.ceiling.begin(life)
        await engine.start()
        beside = Loops()
        beside.add("leases", leases.run)
        if registry is not None and scene.offers:
            beside.add("workers", registry.run)
        if isinstance(inner, FailoverBroker):
            beside.add("probes", partial(_probe, inner))
        if breakers is not None:
            beside.add("breakers", breakers.run)
            projections.start()
        beside.start()
        consumers.start(dead_letters=False)
        self.up = Up(life, engine, requests, leases, consumers, beside, clock, answers, projections)
        scene.log(f"life {life.number} is up")
        if self.memory is not None and scene.dials.volatile:
            for start in self.inside:
                start(life, self.memory)

    def _store_of(self, life: Life) -> Store:
        if self.database is None:
            return cast(Store, StoreDoor(life, self.store, self.watch))
        view = self.database.connect()
        life.connections.append(view)
        return cast(Store, SharedStoreDoor(life, view, self.watch))

    def _options(self) -> KernelOptions:
        return KernelOptions(
            name=self.name or "oraculo",
            lease=REPLICA_LEASE,
            retry_rate=RETRIES_A_SECOND,
            ceiling=self.scene.ceiling,
        )

    async def stop(self) -> None:
        """As SIGTERM does it."""
        life, up = self.life, self.up
        if life is None or up is None or not life.alive:
            return
        self.scene.count("graceful stops")
        self.scene.log(f"life {life.number} is asked to stop")
        try:
            await life.call(up.stop)
        except ProcessDiedError:
            pass
        finally:
            life.kill("stopped")

    # -- what can be asked of it -------------------------------------------------------------------------------------

    async def _ask(self, make: Callable[[Up], Coroutine[Any, Any, T]]) -> T:
        life, up = self.life, self.up
        if life is None or up is None:
            raise ProcessDiedError
        return await life.call(lambda: make(up))

    async def submit(self, body: dict[str, Any], key: str | None) -> Accepted:
        request = requests.parse(body)
        return await self._ask(lambda up: up.requests.accept(request, key, actor=LOCAL))

    async def start(self, name: str, plan: Plan) -> bool:
        """A plan that no request can say. True when it was new."""

        async def start(up: Up) -> bool:
            run = up.engine.next_run()
            outcome = (await up.engine.submit([Work(Start(run, name, plan, "dag"), name)]))[0]
            return outcome.fate is Fate.APPLIED

        return await self._ask(start)

    async def cancel(self, name: str) -> Fate:
        return (await self._ask(lambda up: up.engine.cancel(name, "simulação", actor=LOCAL))).fate

    async def work(self, work: Work) -> Outcome:
        return (await self._ask(lambda up: up.engine.submit([work])))[0]

    async def lease(self, queue: str, worker: str) -> list[Lease]:
        async def lease(up: Up) -> list[Lease]:
            leases = await up.leases.lease(queue, 4, 2.0, worker, LEASE)
            for ticket in [lease.ticket for lease in leases if lease.ticket is not None]:
                self.watch.paused.leased(ticket[0], up.life, shared=self.watch.replicas.shared)
            self.watch.choices.leased(leases, up.life)
            return leases

        return await self._ask(lease)

    async def release(self, lease_id: str) -> None:
        await self._ask(lambda up: up.leases.release(lease_id))

    async def result(self, raw: bytes) -> None:
        """An answer over HTTP: durable first, then the lease is settled."""

        async def result(up: Up) -> None:
            life = up.life
            delivery = [Delivery(HTTP, raw, 0)]
            self.watch.handed(HTTP, delivery, life)
            try:
                await up.engine.submit([up.answers(raw, HTTP)])
            except OraculoError:
                self.watch.settling([], delivery, life)
                raise
            life.check()
            self.watch.settling(delivery, [], life)
            try:
                message = mensagem.parse(raw)
            except OraculoError:
                return
            if message.ticket_id is not None:
                await up.leases.answered(message.ticket_id, message.tentativa)

        await self._ask(result)

    async def look(self, name: str) -> None:
        """What a reader sees is committed."""

        async def look(up: Up) -> None:
            known = name in self.watch.by_name
            state = await up.engine.state_of(name)
            if state is None:
                if known:
                    self.scene.violate("readers see what is committed", f"{name} is committed and not shown")
                return
            committed = self.watch.states.get(state.run)
            if committed is None or state.version > committed.version:
                self.scene.violate("readers see what is committed", f"{name} is shown before it is committed")
            elif state.version == committed.version and state != committed:
                self.scene.violate("readers see what is committed", f"{name} is shown otherwise than committed")

        await self._ask(look)

    def lives_now(self) -> list[Life]:
        """The processes that live."""
        return [self.life] if self.life is not None and self.life.alive else []

    def ups(self) -> list[Up]:
        """Those that are up."""
        return [self.up] if self.up is not None else []

    def idle(self) -> bool:
        if self.up is None:
            return False
        status = self.up.engine.status()
        return not status.effects.waiting and not status.open

    def now(self) -> datetime | None:
        alive = self.life is not None and self.life.alive
        return self.up.clock.now() if alive and self.up is not None else None
