"""Schemas of parameters in PostgreSQL."""

from __future__ import annotations

from datetime import datetime

from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch


class PostgresParameterSchemas:
    """The part of the store that keeps schemas of parameters."""

    _pool: Pool

    async def put_parameter_schema(self, queue: str, body: bytes, at: datetime) -> None:
        async def put(connection: Connection) -> None:
            await connection.execute(
                "INSERT INTO parameter_schemas (queue, body, at) VALUES (%s, %s, %s)"
                " ON CONFLICT (queue) DO UPDATE SET body = excluded.body, at = excluded.at",
                (queue, body.decode(), to_micros(at)),
            )

        await self._pool.write(put)

    async def parameter_schemas(self) -> dict[str, bytes]:
        async def read(connection: Connection) -> dict[str, bytes]:
            rows = await fetch(connection, "SELECT queue, body FROM parameter_schemas ORDER BY queue")
            return {queue: body.encode() for queue, body in rows}

        return await self._pool.read(read)

    async def remove_parameter_schema(self, queue: str) -> bool:
        async def remove(connection: Connection) -> bool:
            done = await connection.execute("DELETE FROM parameter_schemas WHERE queue = %s", (queue,))
            return done.rowcount == 1

        return await self._pool.write(remove)
