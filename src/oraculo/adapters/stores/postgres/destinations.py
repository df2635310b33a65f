"""The part of the PostgreSQL store that knows which destinations get no orders: paused ones, and open breakers."""

from __future__ import annotations

from oraculo.adapters.stores import breaker_rows
from oraculo.adapters.stores.postgres import destination_pauses
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.postgres.system_events import record_system_event
from oraculo.core.breaking import DestinationBreaker
from oraculo.ports.destination_pauses import DestinationPause
from oraculo.ports.system_events import SystemEvent


async def _breakers(connection: Connection) -> list[DestinationBreaker]:
    rows = await fetch(connection, f"SELECT {breaker_rows.BREAKER_COLUMNS} FROM breakers ORDER BY fila")
    return [breaker_rows.breaker_of_row(row) for row in rows]


async def _put_breaker(connection: Connection, one: DestinationBreaker, event: SystemEvent | None) -> bool:
    done = await connection.execute(breaker_rows.put_sql("%s").encode(), breaker_rows.breaker_row(one))
    if done.rowcount != 1:
        return False
    if event is not None:
        await record_system_event(connection, event)
    return True


class PostgresDestinations:
    _pool: Pool

    async def destination_pauses(self) -> list[DestinationPause]:
        return await self._pool.read(destination_pauses.destination_pauses)

    async def put_destination_pause(self, pause: DestinationPause, event: SystemEvent) -> bool:
        return await self._pool.write(lambda c: destination_pauses.put_destination_pause(c, pause, event))

    async def remove_destination_pause(self, target: str, event: SystemEvent) -> bool:
        return await self._pool.write(lambda c: destination_pauses.remove_destination_pause(c, target, event))

    async def breakers(self) -> list[DestinationBreaker]:
        return await self._pool.read(_breakers)

    async def put_breaker(self, breaker: DestinationBreaker, event: SystemEvent | None = None) -> bool:
        return await self._pool.write(lambda c: _put_breaker(c, breaker, event))
