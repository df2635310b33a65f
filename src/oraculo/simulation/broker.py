"""A model of a durable broker and the network before it: it delays, reorders, duplicates, redelivers and goes away.

What it confirmed it keeps, unless the world is `lossy`. Each user has a connection of their own; what a connection took
and did not settle comes again when the connection ends or the broker goes down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import (
    ALL_CONFIRMED,
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Settle,
    Settlement,
)
from oraculo.simulation.scene import Scene

DOWN_MESSAGE = "the model broker is down"


class _Queue:
    def __init__(self) -> None:
        self.ready: list[Delivery] = []
        self.waiting: list[asyncio.Future[None]] = []
        self.coming = 0  # on their way through the network

    def wake(self) -> None:
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_result(None)
        self.waiting.clear()


class ModelBroker:
    def __init__(self, scene: Scene, name: str = "model") -> None:
        self.scene = scene
        self.name = name
        self.queues: dict[str, _Queue] = {}
        self.connections: list[Connection] = []
        self.is_down = False
        self._tag = 0

    def connect(self) -> Connection:
        connection = Connection(self)
        self.connections.append(connection)
        return connection

    def queue(self, name: str) -> _Queue:
        if name not in self.queues:
            self.queues[name] = _Queue()
        return self.queues[name]

    def left(self, name: str) -> int:
        """The messages that are not settled yet."""
        queue = self.queue(name)
        held = sum(1 for c in self.connections for d in c.unsettled.values() if d.queue == name)
        return len(queue.ready) + queue.coming + held

    def enqueue(self, name: str, body: bytes, headers: dict[str, str]) -> None:
        scene = self.scene
        copies = 1
        if scene.trouble(scene.dials.duplicate):
            copies = scene.rng.randint(2, 3)
            scene.count("duplicated", copies - 1)
        for _ in range(copies):
            delay = 0.0
            if scene.trouble(scene.dials.delay):
                delay = round(scene.rng.choice((scene.rng.uniform(0, 0.3), scene.rng.uniform(0, 6))), 6)
                scene.count("delayed")
            self.arrive_in(delay, name, body, False, headers)

    def arrive_in(self, delay: float, name: str, body: bytes, redelivered: bool, headers: dict[str, str]) -> None:
        queue = self.queue(name)
        queue.coming += 1

        def arrive() -> None:
            queue.coming -= 1
            self._tag += 1
            place = self.scene.rng.randint(0, len(queue.ready)) if self.scene.faults else len(queue.ready)
            queue.ready.insert(place, Delivery(name, body, self._tag, redelivered, headers))
            queue.wake()

        if delay > 0:
            self.scene.loop.call_later(delay, arrive)
        else:
            arrive()

    def go_down(self) -> None:
        scene = self.scene
        self.is_down = True
        scene.count("broker downs")
        for connection in self.connections:
            connection.give_back()
        for name, queue in self.queues.items():
            queue.wake()
            if scene.dials.lossy:
                kept = [delivery for delivery in queue.ready if scene.rng.random() < 0.5]
                lost = len(queue.ready) - len(kept)
                queue.ready = kept
                if lost:
                    scene.count("lost", lost)
                    scene.log(f"broker forgets {lost} of {name}")
        scene.log("broker down")

    def come_up(self) -> None:
        self.is_down = False
        for queue in self.queues.values():
            queue.wake()
        self.scene.log("broker up")


class Connection(Broker):
    """The Broker port over the model."""

    scheme = "model"
    traits = BrokerTraits()

    def __init__(self, broker: ModelBroker) -> None:
        self.broker = broker
        self.scheme = broker.name
        self.unsettled: dict[int, Delivery] = {}
        self.is_closed = False

    def _check(self) -> None:
        if self.broker.is_down or self.is_closed:
            raise BrokerUnavailableError(DOWN_MESSAGE)

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        if self.broker.is_down or self.is_closed:
            return PublishReport(messages, reason=DOWN_MESSAGE)
        for message in messages:
            self.broker.enqueue(message.queue, message.body, message.headers or {})
        return ALL_CONFIRMED

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        self._check()
        source = self.broker.queue(queue)
        if not source.ready and wait > 0:
            waiter = self.broker.scene.loop.create_future()
            source.waiting.append(waiter)
            try:
                async with asyncio.timeout(wait):
                    await waiter
            except TimeoutError:
                pass
            self._check()
        taken, source.ready = source.ready[:limit], source.ready[limit:]
        for delivery in taken:
            self.unsettled[delivery.tag] = delivery
        return taken

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        self._check()
        for settlement in settlements:
            delivery = settlement.delivery
            if self.unsettled.pop(delivery.tag, None) is None:
                continue
            if settlement.verdict is Settle.RETRY:
                self.broker.arrive_in(settlement.delay, delivery.queue, delivery.body, True, delivery.headers)

    async def backlog(self, queue: str) -> Backlog:
        return Backlog(len(self.broker.queue(queue).ready))

    def health(self) -> Health:
        return Health(not self.broker.is_down and not self.is_closed)

    async def reset(self) -> None:
        self.give_back()

    async def durability(self) -> str:
        return "crash-safe"

    async def close(self) -> None:
        self.end()

    def give_back(self) -> None:
        taken, self.unsettled = list(self.unsettled.values()), {}
        for delivery in taken:
            self.broker.scene.count("redelivered")
            self.broker.arrive_in(0, delivery.queue, delivery.body, True, delivery.headers)

    def end(self) -> None:
        """The connection breaks, as when its process dies."""
        if not self.is_closed:
            self.is_closed = True
            self.give_back()
            self.broker.connections.remove(self)
