"""The orchestrator as the outside sees it: one process after another over the same store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite import SqliteStore
from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.engines.local import LocalEngine
from oraculo.errors import OraculoError, StoreError
from oraculo.ports.broker import Broker, Delivery
from oraculo.ports.store import Store
from oraculo.runtime.gateway import Lease
from oraculo.runtime.ids import RunNumbers, oldest_run_at
from oraculo.runtime.intake import result_work
from oraculo.runtime.reception import Accepted, Reception
from oraculo.runtime.work import Fate, Work
from oraculo.simulation.broker import Connection, ModelBroker
from oraculo.simulation.faults import BrokerDoor, Life, ModelNotifier, ProcessDiedError, StoreDoor
from oraculo.simulation.scene import Scene
from oraculo.simulation.watch import HTTP, Watch
from oraculo.wire import mensagem, names, requests
from oraculo.wire.requests import Defaults

T = TypeVar("T")

LEASE = timedelta(seconds=4)
DEFAULTS = Defaults(retry_base_s=0.5, retry_cap_s=4.0)
RETRIES_A_SECOND = 3  # few, so that some have to wait


class _Numbers(RunNumbers):
    """The same numbers for the same seed, and others in the next life: it may begin within the same millisecond."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        self._newest = 0

    def next(self, now: datetime) -> int:
        self._newest = max(oldest_run_at(now) + self._scene.rng.randrange(1 << 19), self._newest + 1)
        return self._newest


class Process:
    """Starts a life, waits until it ends, starts the next one."""

    def __init__(self, scene: Scene, store: SqliteStore, watch: Watch, model: ModelBroker) -> None:
        self.scene = scene
        self.store = store
        self.watch = watch
        self.model = model
        self.life: Life | None = None
        self.engine: LocalEngine | None = None
        self.reception: Reception | None = None
        self.memory: MemoryBroker | None = None
        self.lives = 0
        self.inside: list[Callable[[Life, MemoryBroker], None]] = []  # workers that live in the process

    async def run(self) -> None:
        while True:
            self.lives += 1
            life = self.life = Life(self.scene, self.lives)
            try:
                await life.call(lambda life=life: self._boot(life))  # type: ignore[misc]
            except (ProcessDiedError, StoreError):
                life.kill("it did not start")
            else:
                await life.died.wait()
            self.engine = self.reception = None
            await self.scene.sleep(0.02, 2.0)

    async def _boot(self, life: Life) -> None:
        scene = self.scene
        inner: Connection | MemoryBroker
        if scene.dials.volatile:
            inner = self.memory = MemoryBroker()
        else:
            inner = self.model.connect()
            life.connections.append(inner)
        broker = BrokerDoor(life, inner, self.watch)
        store = cast(Store, StoreDoor(life, self.store, self.watch))
        notifier = ModelNotifier(life, self.watch)
        engine = LocalEngine(
            store, cast(Broker, broker), MonotonicClock(), notifier=notifier, retry_rate=RETRIES_A_SECOND
        )
        engine.numbers = _Numbers(scene)
        reception = Reception(engine, DEFAULTS)
        engine.listen(names.REQUESTS, reception.from_message, opens=True)
        await engine.start()
        self.engine, self.reception = engine, reception
        scene.log(f"life {life.number} is up")
        if self.memory is not None and scene.dials.volatile:
            for start in self.inside:
                start(life, self.memory)

    async def stop(self) -> None:
        """As SIGTERM does it."""
        life, engine = self.life, self.engine
        if life is None or engine is None or not life.alive:
            return
        self.scene.count("graceful stops")
        self.scene.log(f"life {life.number} is asked to stop")
        try:
            await life.call(lambda: engine.stop(patience=3.0))
        except ProcessDiedError:
            pass
        finally:
            life.kill("stopped")

    # -- what can be asked of it -------------------------------------------------------------------------------------

    async def _ask(self, make: Callable[[LocalEngine, Reception], Coroutine[Any, Any, T]]) -> T:
        life, engine, reception = self.life, self.engine, self.reception
        if life is None or engine is None or reception is None:
            raise ProcessDiedError
        return await life.call(lambda: make(engine, reception))

    async def submit(self, body: dict[str, Any], key: str | None) -> Accepted:
        request = requests.parse(body)
        return await self._ask(lambda _engine, reception: reception.accept(request, key))

    async def start(self, name: str, plan: Plan) -> bool:
        """A plan that no request can say. True when it was new."""

        async def start(engine: LocalEngine, _reception: Reception) -> bool:
            run = engine.numbers.next(engine.clock.now())
            outcome = (await engine.submit([Work(Start(run, name, plan, "dag"), name)]))[0]
            return outcome.fate is Fate.APPLIED

        return await self._ask(start)

    async def cancel(self, name: str) -> Fate:
        return (await self._ask(lambda engine, _reception: engine.cancel(name, "simulação"))).fate

    async def lease(self, queue: str, worker: str) -> list[Lease]:
        return await self._ask(lambda engine, _reception: engine.gateway.lease(queue, 4, 2.0, worker, LEASE))

    async def release(self, lease_id: str) -> None:
        await self._ask(lambda engine, _reception: engine.gateway.release(lease_id))

    async def result(self, raw: bytes) -> None:
        """An answer over HTTP: durable first, then the lease is settled."""
        life = self.life

        async def result(engine: LocalEngine, _reception: Reception) -> None:
            assert life is not None
            delivery = [Delivery(HTTP, raw, 0)]
            self.watch.handed(HTTP, delivery, life)
            try:
                await engine.submit([result_work(raw, HTTP)])
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
                await engine.gateway.answered(message.ticket_id, message.tentativa)

        await self._ask(result)

    async def look(self, name: str) -> None:
        """What a reader sees is committed."""

        async def look(engine: LocalEngine, _reception: Reception) -> None:
            known = name in self.watch.by_name
            state = await engine.state_of(name)
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

    def idle(self) -> bool:
        engine = self.engine
        return engine is not None and not engine.performer.waiting and not engine.open

    def now(self) -> datetime | None:
        up = self.life is not None and self.life.alive and self.engine is not None
        return self.engine.clock.now() if up and self.engine is not None else None
