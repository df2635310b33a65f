"""The model of a shared database that the simulation uses: it has to do what PostgreSQL does."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from contracts.conftest import StoreCase
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.ports.store import Store
from oraculo.simulation.shared_store import SharedDatabase


class Case(StoreCase):
    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        store = await stack.enter_async_context(SqliteStore(":memory:", threads=False))
        self._database = SharedDatabase(store, MonotonicClock().now)
        self.store = cast(Store, self._database.connect())

    async def second(self, stack: AsyncExitStack) -> Store | None:
        return cast(Store, self._database.connect())
