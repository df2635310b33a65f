"""The orchestrator of a world: the engine `local` over SQLite, one life after another on the same database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import Scope
from oraculo.core.plan import Plan
from oraculo.engines.local import local_engine
from oraculo.errors import StoreError
from oraculo.ports.broker import Delivery, Outgoing
from oraculo.ports.journal import Batch
from oraculo.ports.notifier import Notice, Outcome, Receipt
from oraculo.ports.store import Store
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.requests import RequestIntake
from oraculo.simulation.broker import ModelBroker
from oraculo.simulation.faults import BrokerDoor, Life, ProcessDiedError, StoreDoor
from oraculo.simulation.scene import Scene
from oraculo.testing.broker import PatientConnection
from oraculo.wire import names
from oraculo.wire.requests import Defaults, Requisicao

T = TypeVar("T")

KILLS_MAX = 4  # in one world; enough is enough, so that every story ends


def kills(scene: Scene) -> int:
    """How many processes have died so far because of the fault `kill`."""
    return scene.trace.tally["crashes"]


async def restart(scene: Scene) -> None:
    """The time between the death of a process and its next life."""
    if kills(scene) >= KILLS_MAX:
        scene.dials.crash_point = 0.0
    await scene.sleep(0.02, 0.5)


class CommitsSeen:
    """What went through the doors of the orchestrator, as far as a world has to know."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.plans: dict[int, Plan] = {}
        self.ended: set[int] = set()
        self.news = asyncio.Event()

    async def committed(self, batch: Batch, _life: Life) -> None:
        """Note the plans as they are now, and which runs have ended."""
        for done in batch.steps:
            state = done.state
            self.plans[state.run] = state.plan
            kinds = " ".join(type(event).__name__ for event in done.events)
            self.scene.log(f"commit {state.correlation_id}: {kinds}")
            if state.closed_at is not None:
                self.ended.add(state.run)
        self.news.set()

    def in_doubt(self, batch: Batch, life: Life) -> None: ...

    def publishing(self, messages: Sequence[Outgoing], life: Life) -> None: ...

    def published(self, messages: Sequence[Outgoing]) -> None: ...

    def handed(self, queue: str, deliveries: Sequence[Delivery], life: Life) -> None: ...

    def settling(self, acked: Sequence[Delivery], back: Sequence[Delivery], life: Life) -> None: ...

    def noticed(self, identity: str, body: bytes) -> None: ...

    def took(self, identity: str) -> None: ...


class NoticesKept:
    """A webhook receiver that keeps what it gets."""

    def __init__(self, life: Life, kept: dict[str, bytes]) -> None:
        self._life = life
        self._kept = kept

    async def notify(self, notice: Notice) -> Receipt:
        """Take it."""
        await self._life.reach("before notify")
        self._kept[notice.webhook_id] = notice.body
        await self._life.reach("after notify")
        return Receipt(Outcome.DELIVERED, "200")


@dataclass(slots=True)
class EngineParts:
    """The parts of a life that is up."""

    engine: Kernel
    requests: RequestIntake
    clock: MonotonicClock


class EngineLives:
    """Starts a life, waits until it ends, starts the next one."""

    def __init__(
        self,
        scene: Scene,
        store: SqliteStore,
        broker: ModelBroker,
        seen: CommitsSeen,
        defaults: Defaults,
        task_types: Mapping[str, Requisicao],
    ) -> None:
        self.scene = scene
        self.store = store
        self.notices: dict[str, bytes] = {}
        self.life: Life | None = None
        self.lives = 0
        self._broker = broker
        self._seen = seen
        self._defaults = defaults
        self._task_types = task_types
        self._parts: EngineParts | None = None

    async def run(self) -> None:
        """Live, again and again."""
        while True:
            self.lives += 1
            life = self.life = Life(self.scene, self.lives, "orchestrator")
            try:
                await life.call(lambda life=life: self._boot(life))  # type: ignore[misc]
            except (ProcessDiedError, StoreError):
                life.kill("it did not start")
            else:
                await life.died.wait()
            self._parts = None
            await restart(self.scene)

    async def _boot(self, life: Life) -> None:
        connection = PatientConnection(self._broker)
        life.connections.append(connection)
        broker = BrokerDoor(life, connection, self._seen)
        store = cast(Store, StoreDoor(life, self.store, self._seen))
        clock = MonotonicClock()
        engine = local_engine(KernelPorts(store, broker, clock, NoticesKept(life, self.notices)), KernelOptions())
        requests = RequestIntake(engine, store, clock, self._defaults, task_types=self._task_types)
        leases = HttpLeases(broker, clock, engine.state)
        consumers = QueueConsumers(broker, engine, leases.heard)
        consumers.answers(names.RESULTS, AnswerReader(None), scope=Scope.RESULT_WRITE, plain=True)
        await engine.start()
        consumers.start(dead_letters=False)
        self._parts = EngineParts(engine, requests, clock)
        self.scene.log(f"orchestrator {life.number} is up")

    async def ask(self, make: Callable[[EngineParts], Coroutine[Any, Any, T]]) -> T:
        """Ask the life that is up; ProcessDiedError when there is none, or when it dies meanwhile."""
        life, parts = self.life, self._parts
        if life is None or parts is None:
            raise ProcessDiedError
        return await life.call(lambda: make(parts))
