"""The part of the SQLite store that knows which destinations get no orders: paused ones, and open breakers."""

from __future__ import annotations

import apsw

from oraculo.adapters.stores import breaker_rows
from oraculo.adapters.stores.sqlite import destination_pauses
from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.adapters.stores.sqlite.system_events import record_system_event
from oraculo.core.breaking import DestinationBreaker
from oraculo.ports.destination_pauses import DestinationPause
from oraculo.ports.system_events import SystemEvent


def _breakers(connection: apsw.Connection) -> list[DestinationBreaker]:
    rows = fetch(connection, f"SELECT {breaker_rows.BREAKER_COLUMNS} FROM breakers ORDER BY fila", ())
    return [breaker_rows.breaker_of_row(row) for row in rows]


def _put_breaker(connection: apsw.Connection, one: DestinationBreaker, event: SystemEvent | None) -> bool:
    with connection:
        connection.execute(breaker_rows.put_sql("?"), breaker_rows.breaker_row(one))
        changed = connection.changes() == 1
        if changed and event is not None:
            record_system_event(connection, event)
    return changed


class SqliteDestinations:
    connections: Connections

    async def destination_pauses(self) -> list[DestinationPause]:
        return await self.connections.read(destination_pauses.destination_pauses)

    async def put_destination_pause(self, pause: DestinationPause, event: SystemEvent) -> bool:
        return await self.connections.write(lambda c: destination_pauses.put_destination_pause(c, pause, event))

    async def remove_destination_pause(self, target: str, event: SystemEvent) -> bool:
        return await self.connections.write(lambda c: destination_pauses.remove_destination_pause(c, target, event))

    async def breakers(self) -> list[DestinationBreaker]:
        return await self.connections.read(_breakers)

    async def put_breaker(self, breaker: DestinationBreaker, event: SystemEvent | None = None) -> bool:
        return await self.connections.write(lambda c: _put_breaker(c, breaker, event))
