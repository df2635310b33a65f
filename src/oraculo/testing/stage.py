"""One world from its beginning to its end: the parts are put together, the story is told, what must hold is checked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.replay import rebuild, replay_step
from oraculo.core.state import Orchestration
from oraculo.runtime.kernel import timers
from oraculo.simulation.faults import task_factory
from oraculo.simulation.loop import VirtualLoop, wall_clock
from oraculo.simulation.scene import Dials, Scene
from oraculo.simulation.trace import Trace
from oraculo.testing.broker import FaultyBroker
from oraculo.testing.process import KILLS_MAX, CommitsSeen, EngineLives, kills
from oraculo.testing.rates import FaultRates
from oraculo.testing.workers import WorkerLives
from oraculo.testing.world import KitWorld
from oraculo.wire import requests
from oraculo.wire.requests import Defaults
from oraculo.worker import answers
from oraculo.worker.worker import Worker

Story = Callable[[KitWorld], Awaitable[Any]]

KILL_PAUSES_S = (0.3, 3.0, 30.0)  # the mean time between deaths at any instant is one of these
SETTLE_S, SETTLE_MAX_S = 2.0, 600.0  # how long a world goes on after its story
CLOCK_POLL_S = 30 * 86_400.0
CALM = Dials(True, False, False, 0, 0, 0, 0, 0, 0, 0, 0, 0, False)


@dataclass(frozen=True, slots=True)
class WorldPlan:
    """What a world is made of, but for its seed."""

    story: Story
    workers: Callable[[], Sequence[Worker]]
    rates: FaultRates
    defaults: Defaults
    task_types: Mapping[str, Mapping[str, Any]]


class WorldStage:
    """The world of one seed. `play` tells its story once."""

    def __init__(self, plan: WorldPlan, seed: int, virtual: VirtualLoop, trace: Trace) -> None:
        rng = Random(f"kit {seed}")
        rates = plan.rates.drawn(rng)
        dials = replace(CALM, crash_point=rates.kill, pause=0.2 if rates.any else 0.0)
        self.scene = Scene(rng, virtual, trace, dials)
        self.scene.faults = rates.any
        self._story = plan.story
        self._store = SqliteStore(":memory:", threads=False)
        self._seen = CommitsSeen(self.scene)
        self._broker = FaultyBroker(self.scene, rates, self._seen.plans)
        types = {name: requests.parse(dict(body)) for name, body in plan.task_types.items()}
        self._engine = EngineLives(self.scene, self._store, self._broker, self._seen, plan.defaults, types)
        self._workers: list[WorkerLives] = []
        self.world = KitWorld(seed, self.scene, self._engine, self._workers, self._seen)
        made = plan.workers()
        self._workers += [WorkerLives(self.scene, self._broker, worker, self.world.calls) for worker in made]
        self._lives: list[EngineLives | WorkerLives] = [self._engine, *self._workers]
        self._tasks: list[asyncio.Task[None]] = []
        trace.log(f"rates {rates}")

    async def play(self) -> Any:
        """Tell the story; return what it returns. What must hold and does not is in the trace."""
        scene = self.scene
        scene.loop.set_task_factory(task_factory)
        await self._store.open()
        try:
            for lives in self._lives:
                self._tasks.append(scene.loop.create_task(lives.run()))
            if scene.dials.crash_point:
                self._tasks.append(scene.loop.create_task(self._kill_at_any_instant()))
            value = await self._story(self.world)
            await self._settle()
            return value
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for lives in self._lives:
                scene.count("lives", lives.lives)
                if lives.life is not None:
                    lives.life.kill("the world ends")
            await asyncio.sleep(0)
            await self._store.close()
            scene.trace.now = scene.loop.time()

    async def _kill_at_any_instant(self) -> None:
        """Kill the orchestrator or a worker now and then."""
        scene = self.scene
        pause = scene.rng.choice(KILL_PAUSES_S)
        while kills(scene) < KILLS_MAX:
            await asyncio.sleep(round(scene.rng.expovariate(1 / pause), 6))
            lives = scene.rng.choice(self._lives)
            if lives.life is not None and lives.life.alive and scene.faults:
                scene.count("crashes")
                lives.life.kill("kill: at any instant")

    # -- the end -----------------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """No more faults; what is late arrives and changes nothing."""
        scene = self.scene
        scene.faults = False
        left = self._broker.last_arrival - scene.loop.time()
        await asyncio.sleep(SETTLE_S + min(SETTLE_MAX_S, max(0.0, left)))
        for name, first in list(self.world.results.items()):
            await self.world.result(name)
            run = (await self._store.locate([name]))[name]
            if await self._store.result(run) != first:
                scene.violate("one ending", f"the result of {name} changed after its end")
        await self._replay()

    async def _replay(self) -> None:
        """Every journal gives the same again, and folds to the state that the orchestrator shows."""
        runs = sorted(self._seen.plans)
        for recorded in (await self._store.load(runs)).values():
            state: Orchestration | None = None
            for one in recorded:
                again = replay_step(state, one)
                state = again.state
                if again.events != one.events:
                    self.scene.violate("replay gives the same", f"{state.correlation_id} from event {one.first}")
                    return
            if state is not None and rebuild(recorded) != state:
                self.scene.violate("fold(journal) == state", state.correlation_id)


@contextmanager
def seeded(seed: int, scene: Scene) -> Iterator[None]:
    """Clocks of the product, and the numbers of `random`, belong to the world; afterwards they are as they were. The
    clock of a world never jumps, so that timers need not look at it every second."""
    saved = random.getstate(), vars(answers)["time"], timers.CLOCK_POLL_S
    random.seed(seed)
    vars(answers)["time"] = scene.wall
    vars(timers)["CLOCK_POLL_S"] = CLOCK_POLL_S
    try:
        with wall_clock(scene.wall, scene.loop.time):
            yield
    finally:
        state, vars(answers)["time"], vars(timers)["CLOCK_POLL_S"] = saved
        random.setstate(state)
