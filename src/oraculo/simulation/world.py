"""One seed, one world: the real engine over the real SQLite store, among model brokers, workers and clients.

Faults happen until the horizon; then they stop, and everything that was accepted must end by itself.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import structlog

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.breaking import BreakerRules
from oraculo.simulation import endings, loop
from oraculo.simulation.broker import ModelBroker
from oraculo.simulation.choice_watch import WORKERS_PER_QUEUE
from oraculo.simulation.clients import Client
from oraculo.simulation.facts import NEVER
from oraculo.simulation.faults import Life, task_factory
from oraculo.simulation.fleet import Fleet
from oraculo.simulation.forgers import Forger
from oraculo.simulation.loop import EPOCH, VirtualLoop, wall_clock
from oraculo.simulation.offer_watch import draws_offers
from oraculo.simulation.offered_workers import offered_worker
from oraculo.simulation.operators import operator, pauser, prioritiser, signaller
from oraculo.simulation.plans import FONTES, QUEUES, request
from oraculo.simulation.process import Process
from oraculo.simulation.scene import Dials, Scene
from oraculo.simulation.trace import Report, Trace
from oraculo.simulation.unique_clients import UniqueClient
from oraculo.simulation.watch import Watch
from oraculo.simulation.workers import broker_worker, http_worker
from oraculo.wire import names

BREAKER = BreakerRules(2, timedelta(seconds=1), timedelta(seconds=4))  # quick, so that many open and close
BREAKERS_TIMEOUT_S = 30.0  # for the journal to be read for the breakers, by another process when one has died
RECALLS_SHARE = 0.2  # of worlds under a ceiling whose broker goes away and whose orders are often recalled by pauses
FLEETS_SHARE = 0.4  # of worlds with breakers that have several processes
SETTLE_TIMEOUT_S = 30.0  # seconds after the last deadline
REJOIN_TIMEOUT_S = 5.0  # for a replica that was frozen to find out that others took over from it
WAITS_TIMEOUT_S = 400.0  # more, where plans wait for seconds, one after the other
UNDOING_TIMEOUT_S = 300.0  # more, while something is undone: that begins after the deadline, one ticket after the other
UNMASKED_SETTLE_TIMEOUT_S = 150.0  # seconds after the faults, when there are no deadlines to wait for


class World:
    """`what` is "ceiling": plans of Fluxo C share a few places with workers, on a broker that keeps what it confirmed
    (some of them with outages and many pauses);
    or "brokers": there are two of them, with failover, and each goes away by itself; or "tokens": orders have tokens,
    answers need them, and a forger answers without; or "breaker": destinations fail for a while, and their breakers
    open; or "plans": requests have maps, loops, waits and children, and an operator signals and decides; or "replicas":
    several processes share a database, and each dies and freezes by itself; or "chosen": all workers lease, or wait for
    offers, and tickets are given to those that are best for them; or "fleet": as "ceiling", with several processes
    on a database, and plans of named tasks; or "unique": requests exist once, in half of the worlds among two or
    three processes."""

    def __init__(self, seed: int, loop: VirtualLoop, trace: Trace, *, masked: bool, what: str = "engine") -> None:
        rng = Random(f"{what} {seed} {masked}")
        dials = Dials.draw(rng, masked)
        if what == "brokers":
            dials = replace(dials, volatile=False, broker_down_every=dials.broker_down_every or 4)
        if what == "replicas":
            dials = replace(dials, volatile=False, crash_every=dials.crash_every or 6)
        recalls = what == "ceiling" and Random(f"recalls {seed} {masked}").random() < RECALLS_SHARE
        if what in ("ceiling", "fleet"):
            outage_every = 2.0 if recalls else 0
            dials = replace(dials, volatile=False, lossy=False, broker_down_every=outage_every, lost_confirm=0)
        self.scene = Scene(rng, loop, trace, dials)
        self.scene.recalls = recalls
        if what in ("ceiling", "fleet"):
            self.scene.ceiling, self.scene.is_fleet = rng.randint(1, 3), what == "fleet"
        if what == "breaker":
            self.scene.breaker = BREAKER
        self.scene.shapes = what == "plans"
        self.scene.chooses = what == "chosen"
        self.scene.offers = what == "chosen" and not dials.volatile and draws_offers(seed, masked=masked)
        if what == "tokens":
            self.scene.forger = Forger(rng)
        self.trace = trace
        self._operator = Random(f"operator {what} {seed} {masked}")
        self._pauser = Random(f"pauser {what} {seed} {masked}")
        self._prioritiser = Random(f"prioritiser {what} {seed} {masked}")
        self._signaller = Random(f"signaller {what} {seed} {masked}")
        self.store = SqliteStore(":memory:", threads=False)
        self.store.worker_leases.now = lambda: round((EPOCH + loop.time()) * 1_000_000)
        self.watch = Watch(self.scene, self.store)
        names_of_models = ("one", "two") if what == "brokers" else ("model",)
        self.models = [ModelBroker(self.scene, name) for name in names_of_models]
        self.process = Process(self.scene, self.store, self.watch, self.models)
        if what in ("replicas", "fleet"):
            self.scene.freezes = rng.choice((0, 0.02, 0.1))
            self.process = Fleet(self.scene, self.store, self.watch, self.models, rng.randint(2, 3))
        if what == "unique":
            self.scene.equal_request = request(rng, masked, None)
        if what == "unique" and rng.random() < 0.5 and not dials.volatile:
            self.process = Fleet(self.scene, self.store, self.watch, self.models, rng.randint(2, 3))
        if what == "breaker" and rng.random() < FLEETS_SHARE and not dials.volatile:
            self.watch.breakers.several_processes = True
            self.process = Fleet(self.scene, self.store, self.watch, self.models, 2)
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
            self._go(operator(self.process, self._operator))
            self._go(pauser(self.process, self.watch, self._pauser))
            if scene.ceiling is not None:
                self._go(prioritiser(self.process, self.watch, self._prioritiser))
            if scene.shapes:
                self._go(signaller(self.process, self.watch, self._signaller))
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
            for life in self.process.lives_now():
                life.kill("the world ends")
            await asyncio.sleep(0)
            await self.store.close()
            self.trace.now = scene.loop.time()
            scene.count("worlds")
            scene.count("lives", scene.lives)

    def _go(self, work: Any) -> asyncio.Task[Any]:
        task = self.scene.loop.create_task(work)
        self._tasks.append(task)
        return task

    def _people(self) -> None:
        scene = self.scene
        outside = Life(scene, 0)
        for queue in QUEUES:
            if scene.chooses:
                offered = scene.rng.randint(1, WORKERS_PER_QUEUE) if scene.offers else 0
                for number in range(offered):
                    outside.spawn(partial(offered_worker, scene, self.models[0].connect, queue, outside, number))
                for number in range(WORKERS_PER_QUEUE - offered):
                    outside.spawn(partial(http_worker, scene, self.process, queue, outside, number))
            elif scene.rng.random() < 0.3:
                outside.spawn(partial(http_worker, scene, self.process, queue, outside))
            elif scene.dials.volatile:
                self.process.inside.append(partial(_start_inside, scene, queue))
            else:
                for model in self.models:  # whoever works looks at all of them
                    outside.spawn(partial(broker_worker, scene, model.connect, queue, outside))
        connections = [model.connect() for model in self.models]
        once = scene.equal_request is not None
        many, kind = once or scene.ceiling is not None or scene.breaker is not None, UniqueClient if once else Client
        for number in range(scene.rng.randint(3, 7) if many else scene.rng.randint(1, 4)):
            client = kind(scene, self.process, self.watch, connections[number % len(connections)], f"orq-{number}")
            self.clients.append(client)
            self._go(client.run())
            if scene.rng.random() < 0.25:
                self._go(client.look())

    # -- faults ------------------------------------------------------------------------------------------------------

    async def _trouble(self) -> None:
        dials = self.scene.dials
        kinds = [
            (self._crash, dials.crash_every),
            *((self._broker_down, 0 if dials.volatile else dials.broker_down_every) for _ in self.models),
            (self._store_down, dials.store_down_every),
            (self._jump, 5 if dials.wall_jumps else 0),
            (self._freeze, 6 if self.scene.freezes else 0),
            (self._source_down, 0 if self.scene.breaker is None else 5),
        ]
        await asyncio.gather(*(self._every(mean, work) for work, mean in kinds if mean))

    async def _every(self, mean: float, work: Any) -> None:
        while True:
            await asyncio.sleep(round(self.scene.rng.expovariate(1 / mean), 6))
            await work()

    async def _crash(self) -> None:
        if self.scene.rng.random() < 0.2:
            await self.process.stop()
        elif lives := self.process.lives_now():
            life = lives[0] if len(lives) == 1 else self.scene.rng.choice(lives)
            self.scene.count("crashes")
            self.scene.count("crash at any instant")
            life.kill("at any instant")

    async def _freeze(self) -> None:
        if lives := self.process.lives_now():
            life = self.scene.rng.choice(lives)
            life.freeze(round(self.scene.rng.uniform(0.5, 9), 3), "at any instant")

    async def _broker_down(self) -> None:
        model = self.models[0] if len(self.models) == 1 else self.scene.rng.choice(self.models)
        if model.is_down:
            return
        model.go_down()
        await self.scene.sleep(0.05, 4)
        model.come_up()

    async def _store_down(self) -> None:
        scene = self.scene
        scene.count("store downs")
        for _ in range(scene.rng.choice((1, 1, 2, 3))):
            scene.store_down = scene.rng.choice(("full", "away", "away", "doubt"))
            scene.log(f"store {scene.store_down}")
            await scene.sleep(0.01, 2)
        scene.store_down = None
        scene.log("store back")

    async def _source_down(self) -> None:
        """Make one source fail for a while."""
        name = self.scene.rng.choice(FONTES)
        self.scene.broken.add(name)
        self.scene.log(f"{name} fails from now on")
        await self.scene.sleep(1, 8)
        self.scene.broken.discard(name)

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
        self.scene.broken.clear()
        for model in self.models:
            if model.is_down:
                model.come_up()
        for life in self.process.lives_now():
            life.thaw()
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
            and not any(self.watch.balanced(life) for life in self.process.lives_now())
        )

    def _left(self, queue: str) -> int:
        if not self.scene.dials.volatile:
            return sum(model.left(queue) for model in self.models)
        waiting, taken = self.process.memory.depths().get(queue, (0, 0)) if self.process.memory else (0, 0)
        return waiting + taken

    async def _end(self) -> None:
        """Within the last deadline + 30 s."""
        await self._until(20, lambda: all(client.finished for client in self.clients) and self.process.now())
        now = self.process.now()
        if now is not None:
            self.watch.quiet_at = now + timedelta(seconds=5)
        if self.scene.dials.masked:
            journals = self.watch.journals.values()
            open_ones = [j for j in journals if j.status is None and j.deadline != NEVER]
            deadlines = [j.pauses.on_clock(j.deadline) for j in open_ones]
            last = max(deadlines, default=now)
            most = max(0.0, (last - now).total_seconds()) + SETTLE_TIMEOUT_S if now and last else SETTLE_TIMEOUT_S
        else:
            most = UNMASKED_SETTLE_TIMEOUT_S
        if self.scene.shapes:
            most += WAITS_TIMEOUT_S
        done = await self._until(most, self._done)
        if not done and any(state.undoes and state.open for state in self.watch.states.values()):
            done = await self._until(UNDOING_TIMEOUT_S, self._done)
        if not done and not self.trace.violations:
            left = {queue: self._left(queue) for queue in (names.RESULTS, names.REQUESTS)}
            self.scene.violate("no orphans", f"{endings.why(self.watch, self.process, self.clients)}; left: {left}")
        for _ in range(12):  # notices have a schedule of their own, with hours in it
            wakes = [wake for state in self.watch.states.values() if (wake := state.wake_at())]
            now = self.process.now()
            if not wakes or now is None or self.trace.violations:
                break
            await asyncio.sleep(max(0.0, (min(wakes) - now).total_seconds()) + 3)
        await self._until(SETTLE_TIMEOUT_S, self._settled)
        await self._until(BREAKERS_TIMEOUT_S, lambda: self.watch.breakers.settled)
        await self._until(REJOIN_TIMEOUT_S, lambda: not self.watch.replicas.outside(self._numbers()))

    def _numbers(self) -> list[int]:
        return [life.number for life in self.process.lives_now()]

    def _settled(self) -> bool:
        """True when every orchestration has ended and nothing is owed."""
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


def run_engine(seed: int, *, masked: bool, keep: bool = False, what: str = "engine") -> Report:
    trace = Trace(keep)

    async def main(virtual: VirtualLoop) -> None:
        world = World(seed, virtual, trace, masked=masked, what=what)
        with wall_clock(world.scene.wall, virtual.time):
            await world.run()

    with silence(trace):
        loop.run(main)
    kind = "masked" if masked else "unmasked"
    return trace.report(kind if what == "engine" else f"{what}-{kind}", seed)
