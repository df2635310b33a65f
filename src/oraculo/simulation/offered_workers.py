"""Model workers of a broker that wait for offers: they register, begin what they are offered, or do not, and say so, or
do not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from oraculo.errors import BrokerError
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from oraculo.simulation.broker import Connection
from oraculo.simulation.faults import Life
from oraculo.simulation.scene import Scene
from oraculo.simulation.workers import Behaviour, read, send
from oraculo.wire import names
from oraculo.wire.control_messages import control, order_of
from oraculo.wire.offers import OfferClock, note_of

BEAT_S = 1.0
CONCURRENCY = 2
IGNORED_SHARE, UNTOLD_SHARE, CARELESS_SHARE = 0.25, 0.15, 0.3  # passed over; begun in silence; begun although late


class OfferedWorker:
    """Does what it is offered in its own queue."""

    def __init__(self, scene: Scene, connection: Connection, queue: str, life: Life, number: int) -> None:
        self._scene, self._connection, self._queue, self._life = scene, connection, queue, life
        self._name = f"o-{queue}-{number}"
        self._clock = OfferClock()
        self._running: dict[int, tuple[str, int]] = {}

    async def run(self) -> None:
        """Register, and take what comes, for ever."""
        await self._say("registro")
        self._life.spawn(self._beat)
        while True:
            try:
                found = await self._connection.fetch(names.worker_queue(self._name), limit=10, wait=5.0)
            except BrokerError:
                await self._scene.sleep(0.1, 1.0)
                continue
            for delivery in found:
                await self._take(delivery)

    async def _take(self, delivery: Delivery) -> None:
        note, scene = note_of(delivery.headers), self._scene
        if note is None:
            with suppress(BrokerError):
                await self._connection.settle([Settlement(delivery)])
            if order_of(delivery.body) == "registrar":
                await self._say("registro")
            return
        late = not delivery.redelivered and self._clock.is_late(note, scene.loop.time())
        ignores = not delivery.redelivered and scene.trouble(IGNORED_SHARE)
        if ignores or (late and not scene.chance(CARELESS_SHARE)):
            scene.count("offers passed over")
            with suppress(BrokerError):
                await self._connection.settle([Settlement(delivery)])
            return
        order = read(delivery.body)
        self._running[delivery.tag] = (order.message.ticket_id or "", order.attempt)
        self._life.spawn(partial(self._serve, delivery))
        if not scene.trouble(UNTOLD_SHARE):
            await self._say("batimento")

    async def _serve(self, delivery: Delivery) -> None:
        behaviour = Behaviour(self._scene, read(delivery.body), can_die=True)
        answers = await behaviour.work()
        if answers is None:
            if behaviour.kind == "die" and delivery.tag in self._connection.unsettled:
                del self._running[delivery.tag]
                del self._connection.unsettled[delivery.tag]
                self._connection.broker.arrive_in(0.05, delivery.queue, delivery.body, True, delivery.headers)
            return
        for raw in answers:
            await send(self._scene, self._connection, raw)
        self._running.pop(delivery.tag, None)
        with suppress(BrokerError):
            await self._connection.settle([Settlement(delivery)])

    async def _beat(self) -> None:
        while True:
            await self._scene.sleep(BEAT_S / 2, BEAT_S)
            await self._say("batimento")

    async def _say(self, kind: str) -> None:
        running = [{"ticket_id": ticket, "tentativa": attempt} for ticket, attempt in self._running.values()]
        about: dict[str, object] = {"executando": running}
        if kind == "registro":
            own = names.worker_queue(self._name)
            about |= {"filas": [self._queue], "concorrencia": CONCURRENCY, "fila_propria": own, "ofertas": True}
        await self._connection.publish([Outgoing(names.WORKERS, control(kind, self._name, about), "")])


async def offered_worker(scene: Scene, connect: Callable[[], Connection], queue: str, life: Life, number: int) -> None:
    """Wait for offers in an own queue, for ever."""
    await OfferedWorker(scene, connect(), queue, life, number).run()
