"""A connection that listens for commits of any member."""

from __future__ import annotations

import asyncio

import psycopg

from oraculo.adapters.stores.postgres.connections import ReconnectingConnection, Server
from oraculo.errors import StoreUnavailableError

RECONNECT_PAUSE_S = 0.1


class Listener:
    def __init__(self, server: Server) -> None:
        self._own = ReconnectingConnection(server)
        self._listening: object | None = None
        self._turn = asyncio.Lock()
        self._count = 0  # how often something was heard

    async def close(self) -> None:
        await self._own.drop()

    async def changed(self, patience: float, heard: int | None) -> int:
        """Wait for a commit; return at once when it has only begun to listen, for the first time or again: a commit may
        have been missed."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        before = self._count if heard is None else heard
        async with self._turn:
            while self._count == before and (left := until - loop.time()) > 0:
                try:
                    if await self._heard(left):
                        self._count += 1
                except (StoreUnavailableError, psycopg.Error, OSError):
                    await self._own.drop()
                    await asyncio.sleep(min(RECONNECT_PAUSE_S, max(0.0, until - loop.time())))
        return self._count

    async def _heard(self, patience: float) -> bool:
        connection = await self._own.get()
        if connection is not self._listening:
            await connection.execute("LISTEN oraculo")
            self._listening = connection
            return True
        heard = False
        async for _ in connection.notifies(timeout=patience, stop_after=1):
            heard = True
        return heard
