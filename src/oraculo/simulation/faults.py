"""Lives of the orchestrator's process, and the doors through which it reaches the world.

A life can end before or after any call through a door, or at any instant. From then on its doors are shut: nothing that
the dead process still tries has any effect. The store and the durable broker outlive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, cast

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.stores.sqlite import SqliteStore
from oraculo.errors import BrokerUnavailableError, StoreUnavailableError
from oraculo.ports.broker import Backlog, Delivery, Health, Outgoing, Settle, Settlement
from oraculo.ports.notifier import Notice, Outcome, Receipt
from oraculo.ports.store import Asked, Found
from oraculo.simulation.broker import Connection
from oraculo.simulation.scene import Scene
from oraculo.simulation.watch import Watch

T = TypeVar("T")

_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class ProcessDiedError(Exception):
    """The process that was asked is gone."""


class Life:
    def __init__(self, scene: Scene, number: int) -> None:
        self.scene = scene
        self.number = number
        self.alive = True
        self.died = asyncio.Event()
        self.connections: list[Connection] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._context = copy_context()
        self._context.run(_LIFE.set, self)

    async def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something inside this process; ProcessDiedError when it dies meanwhile."""
        if not self.alive:
            raise ProcessDiedError
        task = self.scene.loop.create_task(make(), context=self._context)
        await asyncio.wait([task])
        if task.cancelled():
            raise ProcessDiedError
        return task.result()

    def spawn(self, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.scene.loop.create_task(make(), context=self._context)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) > 200:
            self._tasks = [one for one in self._tasks if not one.done()]

    def kill(self, why: str) -> None:
        if not self.alive:
            return
        self.alive = False
        self.scene.log(f"life {self.number} ends: {why}")
        for task in self._tasks:
            task.cancel()
        for connection in self.connections:
            connection.end()
        self.died.set()

    def check(self) -> None:
        if not self.alive:
            raise asyncio.CancelledError

    async def reach(self, point: str) -> None:
        """A place where the process can die, or where time can pass."""
        self.check()
        if self.scene.trouble(self.scene.dials.crash_point):
            self.scene.count("crashes")
            self.scene.count(f"crash {point}")
            self.kill(point)
            raise asyncio.CancelledError
        if self.scene.chance(self.scene.dials.pause):
            await self.scene.sleep(0, 0.01)
            self.check()


def task_factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    """Every task knows the life that it belongs to."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    life = task.get_context().get(_LIFE) if hasattr(task, "get_context") else _life_of(options)
    if life is not None:
        life.adopt(task)
    return task


def _life_of(options: dict[str, Any]) -> Life | None:
    context = options.get("context")
    return _LIFE.get() if context is None else context.get(_LIFE)


class StoreDoor:
    """The Store port. Everything passes through; appends are watched."""

    shared = False

    def __init__(self, life: Life, store: SqliteStore, watch: Watch) -> None:
        self._life = life
        self._store = store
        self._watch = watch

    async def begin(self, asked: Asked) -> Found:
        """The disk is not touched when nothing is asked that is not known."""
        if asked.names or asked.keys or 0 in asked.known.values():
            return cast("Found", await self.__getattr__("begin")(asked))
        return await self._store.begin(asked)

    async def abandon(self) -> None:
        await self._store.abandon()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        life, scene = self._life, self._life.scene

        async def call(*args: Any, **options: Any) -> Any:
            await life.reach(f"before {name}")
            if scene.store_down == "away" or (scene.store_down and name == "append"):
                scene.count("store refusals")
                raise StoreUnavailableError(f"the model disk is {scene.store_down}")
            if scene.dials.store_down_every and scene.trouble(0.1 if name == "result" else 0.01):
                scene.count("store refusals")
                raise StoreUnavailableError("a hiccup of the model disk")
            result = await method(*args, **options)
            if name == "append":
                await self._watch.committed(args[0], life)
                if scene.store_down == "doubt" or (scene.trouble(0.004) and scene.dials.store_down_every):
                    scene.count("commits in doubt")
                    self._watch.in_doubt(args[0], life)
                    raise StoreUnavailableError("committed, and the answer was lost")
            await life.reach(f"after {name}")
            return result

        return call


class BrokerDoor:
    """The Broker port of the engine: confirmations are lost here, and the watch sees all that goes through."""

    def __init__(self, life: Life, broker: Connection | MemoryBroker, watch: Watch) -> None:
        self._life = life
        self._broker = broker
        self._watch = watch
        self.scheme = broker.scheme
        self.volatile = broker.volatile

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        life, scene = self._life, self._life.scene
        await life.reach("before publish")
        self._watch.publishing(messages, life)
        if scene.trouble(scene.dials.lost_confirm):
            arrived = scene.rng.randint(0, len(messages))
            await self._broker.publish(messages[:arrived])
            scene.count("confirms lost")
            scene.log(f"confirm lost, {arrived} of {len(messages)} arrived")
            if scene.trouble(0.2):
                scene.count("crashes")
                life.kill("in the middle of a publish")
                raise asyncio.CancelledError
            raise BrokerUnavailableError("the confirmation was lost")
        await self._broker.publish(messages)
        self._watch.published(messages)
        await life.reach("after publish")

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        await self._life.reach("before fetch")
        deliveries = await self._broker.fetch(queue, limit=limit, wait=wait)
        self._life.check()
        self._watch.handed(queue, deliveries, self._life)
        await self._life.reach("after fetch")
        return deliveries

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        life, scene = self._life, self._life.scene
        await life.reach("before settle")
        acked = [s.delivery for s in settlements if s.verdict is Settle.ACK]
        back = [s.delivery for s in settlements if s.verdict is Settle.RETRY]
        self._watch.settling(acked, back, life)
        if isinstance(self._broker, Connection) and scene.trouble(scene.dials.lost_confirm / 3):
            self._broker.give_back()
            raise BrokerUnavailableError("the acknowledgement was lost")
        await self._broker.settle(settlements)
        await life.reach("after settle")

    async def backlog(self, queue: str) -> Backlog:
        return await self._broker.backlog(queue)

    def health(self) -> Health:
        return self._broker.health()

    async def reset(self) -> None:
        await self._broker.reset()

    async def durability(self) -> str:
        return await self._broker.durability()

    async def close(self) -> None:
        await self._broker.close()


class ModelNotifier:
    """A webhook receiver that sometimes says no."""

    def __init__(self, life: Life, watch: Watch) -> None:
        self._life = life
        self._watch = watch

    async def notify(self, notice: Notice) -> Receipt:
        life, scene = self._life, self._life.scene
        await life.reach("before notify")
        self._watch.noticed(notice.webhook_id, notice.body)
        await scene.sleep(0, 0.2)
        life.check()
        if scene.trouble(0.1):
            return Receipt(Outcome.RETRY, "503")
        if scene.trouble(0.03):
            return Receipt(Outcome.REFUSED, "410")
        self._watch.took(notice.webhook_id)
        await life.reach("after notify")
        return Receipt(Outcome.DELIVERED, "200")
