"""Lives of the orchestrator's process, and the doors through which it reaches the world.

A life can end before or after any call through a door, or at any instant. From then on its doors are shut: nothing that
the dead process still tries has any effect. The store and the durable broker outlive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.errors import BrokerUnavailableError, StoreUnavailableError
from oraculo.ports.broker import Backlog, Broker, Delivery, Health, Outgoing, PublishReport, Settle, Settlement
from oraculo.ports.journal import Batch, LockedSnapshot, LockRequest
from oraculo.ports.notifier import Notice, Outcome, Receipt
from oraculo.simulation.broker import Connection
from oraculo.simulation.scene import Scene
from oraculo.simulation.shared_store import ModelSharedStore
from oraculo.simulation.watch import Watch

T = TypeVar("T")

_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class ProcessDiedError(Exception):
    """The process that was asked is gone."""


class Witness(Protocol):
    """The observer of what goes through the doors."""

    async def committed(self, batch: Batch, life: Life) -> None: ...

    def in_doubt(self, batch: Batch, life: Life) -> None: ...

    def publishing(self, messages: Sequence[Outgoing], life: Life) -> None: ...

    def published(self, messages: Sequence[Outgoing]) -> None: ...

    def handed(self, queue: str, deliveries: Sequence[Delivery], life: Life) -> None: ...

    def settling(self, acked: Sequence[Delivery], back: Sequence[Delivery], life: Life) -> None: ...

    def noticed(self, identity: str, body: bytes) -> None: ...

    def took(self, identity: str) -> None: ...


class Breakable(Protocol):
    """Something of a process that breaks when the process dies."""

    def end(self) -> None: ...


class Life:
    """One life of a process; `who` is what the trace calls it."""

    def __init__(self, scene: Scene, number: int, who: str = "life") -> None:
        self.scene = scene
        self.number = number
        self.who = who
        self.alive = True
        self.died = asyncio.Event()
        self.blind_at = -1.0  # when it thawed last, or its store did not answer: it may know less than is committed
        self.connections: list[Breakable] = []
        self._thawed: asyncio.Event | None = None  # set: it stands still, as after SIGSTOP
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
        self.scene.log(f"{self.who} {self.number} ends: {why}")
        for task in self._tasks:
            task.cancel()
        for connection in self.connections:
            connection.end()
        self.died.set()

    def check(self) -> None:
        if not self.alive:
            raise asyncio.CancelledError

    def freeze(self, seconds: float, why: str) -> None:
        """Stand still: from now on nothing goes out of the process and nothing comes in, until it thaws."""
        if self._thawed is not None or not self.alive:
            return
        self._thawed = asyncio.Event()
        self.scene.count("freezes")
        self.scene.log(f"life {self.number} freezes for {seconds:g} s: {why}")
        self.scene.loop.call_later(seconds, self.thaw)

    def thaw(self) -> None:
        thawed, self._thawed = self._thawed, None
        if thawed is not None:
            self.blind_at = self.scene.loop.time()
            thawed.set()
            self.scene.log(f"life {self.number} goes on")

    async def reach(self, point: str) -> None:
        """A place where the process can die, or where time can pass."""
        while self._thawed is not None:
            await self._thawed.wait()
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

    sharing: Any = None

    def __init__(self, life: Life, store: SqliteStore | ModelSharedStore, watch: Witness) -> None:
        self._life = life
        self._store = store
        self._watch = watch

    async def begin(self, asked: LockRequest) -> LockedSnapshot:
        """The disk is not touched when nothing is asked that is not known."""
        if asked.names or asked.keys or 0 in asked.known.values():
            return cast("LockedSnapshot", await self.__getattr__("begin")(asked))
        return await self._store.begin(asked)

    async def abandon(self) -> None:
        await self._store.abandon()

    def _refusal(self, name: str) -> str:
        """Why this call fails, if it does."""
        scene = self._life.scene
        if scene.store_down == "away" or (scene.store_down == "full" and name == "append"):
            return f"the model disk is {scene.store_down}"
        if scene.dials.store_down_every and scene.trouble(0.1 if name == "result" else 0.01):
            return "a hiccup of the model disk"
        return ""

    def _saw(self, name: str, args: Sequence[Any], result: Any) -> None:
        """Told of every call that the store has answered, before anything can happen to the answer."""
        self._saw_breaker(name, args, result)

    def _saw_breaker(self, name: str, args: Sequence[Any], result: Any) -> None:
        scene = self._life.scene
        if name == "put_breaker" and result and scene.on_breaker is not None:
            scene.on_breaker(args[0])

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        life, scene = self._life, self._life.scene

        async def call(*args: Any, **options: Any) -> Any:
            await life.reach(f"before {name}")
            refusal = self._refusal(name)
            if refusal:
                life.blind_at = scene.loop.time()
                scene.count("store refusals")
                if name == "append":
                    await self._store.abandon()  # the connection broke: the server undoes what was begun
                raise StoreUnavailableError(refusal)
            result = await method(*args, **options)
            self._saw(name, args, result)
            if name == "append":
                await self._watch.committed(args[0], life)
                if scene.store_down == "doubt" or (scene.trouble(0.004) and scene.dials.store_down_every):
                    scene.count("commits in doubt")
                    self._watch.in_doubt(args[0], life)
                    raise StoreUnavailableError("committed, and the answer was lost")
            await life.reach(f"after {name}")
            return result

        return call


class SharedStoreDoor(StoreDoor):
    """The same of a store that several processes share: who joins, renews, writes and takes over is watched, too."""

    def __init__(self, life: Life, store: ModelSharedStore, watch: Watch) -> None:
        super().__init__(life, store, watch)
        self.sharing = self
        self._replicas = watch.replicas
        self._epoch = 0

    async def begin(self, asked: LockRequest) -> LockedSnapshot:
        return cast("LockedSnapshot", await self.__getattr__("begin")(asked))

    async def leave(self) -> None:
        self._replicas.left(self._epoch)
        await self.__getattr__("leave")()

    def _saw(self, name: str, args: Sequence[Any], result: Any) -> None:
        replicas = self._replicas
        self._saw_breaker(name, args, result)
        if name == "join":
            self._epoch = result.epoch
            replicas.joined(self._life.number, result.epoch, args[1])
        elif name == "renew":
            replicas.renewed(self._epoch)
        elif name == "rescue":
            dead, runs = result
            replicas.took_over(self._epoch, [one.epoch for one in dead], runs)


class BrokerDoor(Broker):
    """The Broker port of the engine: confirmations are lost here, and the watch sees all that goes through."""

    def __init__(self, life: Life, broker: Connection | MemoryBroker | FailoverBroker, watch: Witness) -> None:
        self._life = life
        self._broker = broker
        self._watch = watch
        self.scheme = broker.scheme
        self.traits = broker.traits

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        life, scene = self._life, self._life.scene
        if scene.trouble(scene.freezes):
            life.freeze(round(scene.rng.uniform(0.5, 8), 3), "between a commit and its messages")
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
            return PublishReport(messages, reason="the confirmation was lost")
        no_room = messages[: scene.rng.randint(1, len(messages))] if scene.trouble(scene.dials.lost_confirm) else ()
        report = await self._broker.publish(messages[len(no_room) :])
        if report.complete:
            self._watch.published(messages[len(no_room) :])
            await life.reach("after publish")
        if no_room:
            scene.count("without room", len(no_room))
            scene.log(f"no room for {len(no_room)} of {len(messages)}")
            report = replace(report, no_room=no_room, reason="the queue is full")
        return report

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

    def __init__(self, life: Life, watch: Witness) -> None:
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
