"""One seed, one world: the real engine over the real SQLite store, among model brokers, workers and clients.

Faults happen until the horizon; then they stop, and everything that was accepted must end by itself.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import structlog

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.stores.sqlite import SqliteStore
from oraculo.simulation import endings, loop
from oraculo.simulation.broker import ModelBroker
from oraculo.simulation.clients import Client
from oraculo.simulation.faults import Life, task_factory
from oraculo.simulation.loop import VirtualLoop, wall_clock
from oraculo.simulation.plans import QUEUES
from oraculo.simulation.process import Process
from oraculo.simulation.scene import Dials, Scene
from oraculo.simulation.trace import Report, Trace
from oraculo.simulation.watch import Watch
from oraculo.simulation.workers import broker_worker, http_worker
from oraculo.wire import names

PATIENCE = 30.0  # seconds after the last deadline
UNMASKED_PATIENCE = 150.0  # seconds after the faults, when there are no deadlines to wait for


class World:
    def __init__(self, seed: int, loop: VirtualLoop, trace: Trace, *, masked: bool) -> None:
        rng = Random(f"engine {seed} {masked}")
        self.scene = Scene(rng, loop, trace, Dials.draw(rng, masked))
        self.trace = trace
        self.store = SqliteStore(":memory:", threads=False)
        self.watch = Watch(self.scene, self.store)
        self.model = ModelBroker(self.scene)
        self.process = Process(self.scene, self.store, self.watch, self.model)
        self.clients: list[Client] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def run(self) -> None:
        scene = self.scene
        scene.log(f"dials {scene.dials}")
        scene.loop.set_task_factory(task_factory)
        await self.store.open()
        try:
            self._people()
            self._go(self.process.run())
            trouble = self._go(self._trouble())
            await self._until(scene.dials.horizon, lambda: False)
            trouble.cancel()
            await asyncio.gather(trouble, return_exceptions=True)
            self._heal()
            await self._end()
            if not self.trace.violations:
                await endings.check(self.watch, self.process)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self.process.life is not None:
                self.process.life.kill("the world ends")
            await asyncio.sleep(0)
            await self.store.close()
            self.trace.now = scene.loop.time()
            scene.count("worlds")
            scene.count("lives", self.process.lives)

    def _go(self, work: Any) -> asyncio.Task[Any]:
        task = self.scene.loop.create_task(work)
        self._tasks.append(task)
        return task

    def _people(self) -> None:
        scene = self.scene
        outside = Life(scene, 0)
        for queue in QUEUES:
            if scene.rng.random() < 0.3:
                outside.spawn(partial(http_worker, scene, self.process, queue, outside))
            elif scene.dials.volatile:
                self.process.inside.append(partial(_start_inside, scene, queue))
            else:
                outside.spawn(partial(broker_worker, scene, self.model.connect, queue, outside))
        connection = self.model.connect()
        for number in range(scene.rng.randint(1, 4)):
            client = Client(scene, self.process, self.watch, connection, f"orq-{number}")
            self.clients.append(client)
            self._go(client.run())
            if scene.rng.random() < 0.25:
                self._go(client.look())

    # -- faults ------------------------------------------------------------------------------------------------------

    async def _trouble(self) -> None:
        dials = self.scene.dials
        kinds = [
            (self._crash, dials.crash_every),
            (self._broker_down, 0 if dials.volatile else dials.broker_down_every),
            (self._store_down, dials.store_down_every),
            (self._jump, 5 if dials.wall_jumps else 0),
        ]
        await asyncio.gather(*(self._every(mean, work) for work, mean in kinds if mean))

    async def _every(self, mean: float, work: Any) -> None:
        while True:
            await asyncio.sleep(round(self.scene.rng.expovariate(1 / mean), 6))
            await work()

    async def _crash(self) -> None:
        life = self.process.life
        if self.scene.rng.random() < 0.2:
            await self.process.stop()
        elif life is not None and life.alive:
            self.scene.count("crashes")
            self.scene.count("crash at any instant")
            life.kill("at any instant")

    async def _broker_down(self) -> None:
        self.model.go_down()
        await self.scene.sleep(0.05, 4)
        self.model.come_up()

    async def _store_down(self) -> None:
        scene = self.scene
        scene.count("store downs")
        for _ in range(scene.rng.choice((1, 1, 2, 3))):
            scene.store_down = scene.rng.choice(("full", "away", "away", "doubt"))
            scene.log(f"store {scene.store_down}")
            await scene.sleep(0.01, 2)
        scene.store_down = None
        scene.log("store back")

    async def _jump(self) -> None:
        hours = self.scene.rng.choice((-24, -1, 1, 24))
        if not self.scene.dials.masked and self.scene.wall_offset > 5 * 24 * 3600:
            hours = -24
        self.scene.wall_offset += hours * 3600
        self.scene.count("clock jumps")
        self.scene.log(f"wall clock {hours:+} h")

    def _heal(self) -> None:
        self.scene.faults = False
        self.scene.store_down = None
        if self.model.is_down:
            self.model.come_up()
        self.scene.log("the faults are over")

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _until(self, most: float, reached: Any) -> bool:
        limit = self.scene.loop.time() + most
        while not self.trace.violations:
            left = limit - self.scene.loop.time()
            if reached():
                return True
            if left <= 0:
                return False
            await asyncio.sleep(min(0.5, left))
        return False

    def _done(self) -> bool:
        """Everything that was asked for has ended, and nothing is on its way to the orchestrator any more."""
        return (
            all(client.finished for client in self.clients)
            and self.process.idle()
            and all(journal.status is not None for journal in self.watch.journals.values())
            and not any(self._left(queue) for queue in (names.RESULTS, names.REQUESTS))
            and not (self.process.life and self.watch.balanced(self.process.life))
        )

    def _left(self, queue: str) -> int:
        if not self.scene.dials.volatile:
            return self.model.left(queue)
        waiting, taken = self.process.memory.depths().get(queue, (0, 0)) if self.process.memory else (0, 0)
        return waiting + taken

    async def _end(self) -> None:
        """Within the last deadline + 30 s."""
        await self._until(20, lambda: all(client.finished for client in self.clients) and self.process.now())
        now = self.process.now()
        if now is not None:
            self.watch.quiet_at = now + timedelta(seconds=5)
        if self.scene.dials.masked:
            deadlines = [j.deadline for j in self.watch.journals.values() if j.status is None]
            last = max(deadlines, default=now)
            most = max(0.0, (last - now).total_seconds()) + PATIENCE if now and last else PATIENCE
        else:
            most = UNMASKED_PATIENCE
        if not await self._until(most, self._done) and not self.trace.violations:
            left = {queue: self._left(queue) for queue in (names.RESULTS, names.REQUESTS)}
            self.scene.violate("no orphans", f"{endings.why(self.watch, self.process, self.clients)}; left: {left}")
        for _ in range(12):  # notices have a schedule of their own, with hours in it
            wakes = [wake for state in self.watch.states.values() if (wake := state.wake_at())]
            now = self.process.now()
            if not wakes or now is None or self.trace.violations:
                break
            await asyncio.sleep(max(0.0, (min(wakes) - now).total_seconds()) + 3)
        await self._until(PATIENCE, self._settled)

    def _settled(self) -> bool:
        """Done, and nothing is owed to anybody."""
        return self._done() and not any(s.owes or s.wake_at() for s in self.watch.states.values())


def _start_inside(scene: Scene, queue: str, life: Life, memory: MemoryBroker) -> None:
    life.spawn(partial(broker_worker, scene, lambda: memory, queue, life))


@contextmanager
def silence(trace: Trace) -> Iterator[None]:
    """No logs from inside a world; what the engine logs as a fault of its own is a violation."""

    def listen(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> Any:
        if line["event"] in ("step failed", "loop failed, restarted"):
            trace.violate("nothing breaks inside", f"{line['event']}: {line.get('error') or sys.exc_info()[1]!r}")
        raise structlog.DropEvent

    saved = structlog.get_config()
    structlog.configure(
        processors=[listen],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**saved)


def run_engine(seed: int, *, masked: bool, keep: bool = False) -> Report:
    trace = Trace(keep)

    async def main(virtual: VirtualLoop) -> None:
        world = World(seed, virtual, trace, masked=masked)
        with wall_clock(world.scene.wall, virtual.time):
            await world.run()

    with silence(trace):
        loop.run(main)
    return trace.report("masked" if masked else "unmasked", seed)
