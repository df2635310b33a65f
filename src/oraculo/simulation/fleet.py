"""Several orchestrators on one database: each a process of its own, which dies, freezes and is started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.simulation.broker import ModelBroker
from oraculo.simulation.faults import Life, ProcessDiedError
from oraculo.simulation.process import Process, Up
from oraculo.simulation.scene import Scene
from oraculo.simulation.shared_store import SharedDatabase
from oraculo.simulation.watch import Watch

T = TypeVar("T")


class Fleet(Process):
    """Answers as one process does: a balancer gives each question to one of the replicas that are up."""

    def __init__(
        self, scene: Scene, store: SqliteStore, watch: Watch, models: Sequence[ModelBroker], count: int
    ) -> None:
        database = SharedDatabase(store, scene.database_clock)
        super().__init__(scene, store, watch, models, database)
        self.replicas = [Process(scene, store, watch, models, database, f"replica-{n}") for n in range(count)]

    async def run(self) -> None:
        await asyncio.gather(*(one.run() for one in self.replicas))

    async def stop(self) -> None:
        await self.scene.rng.choice(self.replicas).stop()

    async def _ask(self, make: Callable[[Up], Coroutine[Any, Any, T]]) -> T:
        there = [one for one in self.replicas if one.up is not None]
        if not there:
            raise ProcessDiedError
        return await self.scene.rng.choice(there)._ask(make)

    def lives_now(self) -> list[Life]:
        return [life for one in self.replicas for life in one.lives_now()]

    def ups(self) -> list[Up]:
        return [up for one in self.replicas for up in one.ups()]

    def idle(self) -> bool:
        return all(one.idle() for one in self.replicas)

    def now(self) -> datetime | None:
        return next((now for one in self.replicas if (now := one.now()) is not None), None)
