"""PostgreSQL under the contract suite."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from contracts.conftest import StoreCase
from databases import database, opened
from oraculo.ports.store import Store


class Case(StoreCase):
    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        self.url = await database()
        self.store = await opened(stack, self.url)

    async def second(self, stack: AsyncExitStack) -> Store | None:
        return await opened(stack, self.url)
