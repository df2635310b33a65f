"""The broker of a world: orders and answers get lost, come more than once, or come late."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import orjson

from oraculo.core.plan import Plan
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.ports.broker import Delivery, Outgoing, PublishReport
from oraculo.simulation.broker import Connection, ModelBroker
from oraculo.simulation.faults import Life
from oraculo.simulation.scene import Scene
from oraculo.testing.rates import FaultRates

LATE_BY_MAX_S = 5.0  # after the attempt has run out of time
LATENCY_MAX_S = 0.02
SAME_MESSAGE_MAX = 3
IDLE_WAIT_S = 30 * 86_400.0  # for which a queue that is empty is asked once: days of a world have to cost little
_ANSWERS_BEGIN = "resultado"


class FaultyBroker(ModelBroker):
    """Keeps what it confirmed, but for the faults of `rates`. `plans` are those of the runs that are committed."""

    def __init__(self, scene: Scene, rates: FaultRates, plans: dict[int, Plan]) -> None:
        super().__init__(scene)
        self.last_arrival = 0.0  # when the last message that is on its way arrives
        self._rates = rates
        self._plans = plans

    def enqueue(self, name: str, body: bytes, headers: dict[str, str]) -> None:
        """Take a message, or let something happen to it."""
        scene, rates = self.scene, self._rates
        if not scene.faults:
            self.arrive_in(0.0, name, body, False, headers)
            return
        what, timeout, is_last = self._about(body)
        spared = timeout is None or (is_last and rates.spare_last)
        if not spared and scene.trouble(rates.drop):
            scene.count("drop")
            scene.log(f"drop: {what} on {name} is lost")
            return
        copies = 1
        if scene.trouble(rates.duplicate):
            copies = scene.rng.randint(2, SAME_MESSAGE_MAX)
            scene.count("duplicate")
            scene.log(f"duplicate: {what} on {name} comes {copies} times")
        for _ in range(copies):
            delay = scene.rng.uniform(0, LATENCY_MAX_S)
            if timeout is not None and not spared and scene.trouble(rates.late):
                delay += timeout.total_seconds() + scene.rng.uniform(0, LATE_BY_MAX_S)
                scene.count("late")
                scene.log(f"late: {what} on {name} comes {delay:.3f} s later")
            delay = round(delay, 6)
            self.last_arrival = max(self.last_arrival, scene.loop.time() + delay)
            self.arrive_in(delay, name, body, False, headers)

    def _about(self, body: bytes) -> tuple[str, timedelta | None, bool]:
        """What a message is, how long its attempt may take, and whether that is the last one; None: it is neither
        order nor answer of a run that is known."""
        message = orjson.loads(body)
        place = parse_ticket_id(str(message.get("ticket_id")))
        plan = None if place is None else self._plans.get(place[0])
        if place is None or plan is None or place[1] >= len(plan.tasks):
            return "a message", None, False
        task, attempt = plan.tasks[place[1]], message.get("tentativa") or 1
        kind = "answer to" if str(message.get("tipo_evento")).startswith(_ANSWERS_BEGIN) else "order"
        return f"{kind} {task.name} #{place[1]}.{attempt}", task.timeout, attempt >= task.max_attempts


class PatientConnection(Connection):
    """The Broker port; a fetch from an empty queue waits long."""

    def __init__(self, broker: ModelBroker) -> None:
        super().__init__(broker)
        broker.connections.append(self)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        return await super().fetch(queue, limit=limit, wait=max(wait, IDLE_WAIT_S) if wait else 0.0)


class WorkerConnection(PatientConnection):
    """The Broker port of a worker, whose process can die before and after each call."""

    def __init__(self, broker: ModelBroker, life: Life) -> None:
        super().__init__(broker)
        self._life = life
        life.connections.append(self)

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        await self._life.reach("before its answer is sent")
        report = await super().publish(messages)
        await self._life.reach("after its answer, before the order is settled")
        return report

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        taken = await super().fetch(queue, limit=limit, wait=wait)
        if taken:
            await self._life.reach("with an order in hand")
        return taken
