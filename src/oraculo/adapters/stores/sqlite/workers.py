"""Registered workers in SQLite. One process has the file to itself, so its clock is the store's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import apsw
import orjson

from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.adapters.stores.worker_rows import FORGETTING, WORKER_COLUMNS, worker_of
from oraculo.core.tenants import tenant_of
from oraculo.ports.workers import StoredWorker, WorkerBeat

_MICROSECOND = timedelta(microseconds=1)
_REGISTER = """
INSERT INTO workers (nome, tenant, body, beat, answered, failed, lease, registered_at, last_seen, lease_until)
VALUES (:nome, :tenant, :body, :beat, 0, 0, :lease, :now, :now, :now + :lease)
ON CONFLICT (nome) DO UPDATE SET body = excluded.body, beat = excluded.beat, lease = excluded.lease,
registered_at = excluded.registered_at, last_seen = excluded.last_seen, lease_until = excluded.lease_until,
lost_at = NULL"""
_BEAT = """
UPDATE workers SET last_seen = :now, lease_until = :now + lease, beat = coalesce(:beat, beat),
answered = answered + :answered, failed = failed + :failed, last_error = coalesce(:last_error, last_error)
WHERE nome = :nome AND lost_at IS NULL"""


class SqliteWorkers:
    """`now` is the time in microseconds since 1970."""

    def __init__(self, connections: Connections, now: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._connections = connections
        self.now = now

    async def register(self, key: str, body: bytes, beat: bytes, lease: timedelta) -> StoredWorker:
        now = self.now()
        about = {"nome": key, "tenant": tenant_of(key), "body": body, "beat": beat}

        def write(connection: apsw.Connection) -> None:
            with connection:
                connection.execute(_REGISTER, {**about, "lease": lease // _MICROSECOND, "now": now})

        await self._connections.write(write)
        found = await self.worker(key)
        assert found is not None
        return found

    async def beat(self, beats: Sequence[WorkerBeat]) -> set[str]:
        now = self.now()

        def write(connection: apsw.Connection) -> set[str]:
            known: set[str] = set()
            with connection:
                for one in beats:
                    counts = {"answered": one.answered, "failed": one.failed, "last_error": one.last_error}
                    connection.execute(_BEAT, {"now": now, "nome": one.key, "beat": one.beat, **counts})
                    if connection.changes():
                        known.add(one.key)
            return known

        return await self._connections.write(write)

    async def workers(self, tenant: str, after: str = "", limit: int = 1000) -> list[StoredWorker]:
        sql = f"SELECT {WORKER_COLUMNS} FROM workers WHERE tenant = ? AND nome > ? ORDER BY nome LIMIT ?"
        return await self._read(sql, (tenant, after, limit))

    async def worker(self, key: str) -> StoredWorker | None:
        found = await self._read(f"SELECT {WORKER_COLUMNS} FROM workers WHERE nome = ?", (key,))
        return found[0] if found else None

    async def drain(self, key: str, drain: bytes | None) -> bool:
        return await self._change("UPDATE workers SET drain = ? WHERE nome = ?", (drain, key)) > 0

    async def remove(self, key: str) -> bool:
        return await self._change("DELETE FROM workers WHERE nome = ?", (key,)) > 0

    async def expired(self, limit: int) -> list[StoredWorker]:
        sql = (
            f"SELECT {WORKER_COLUMNS} FROM workers WHERE lost_at IS NULL AND lease_until < ?"
            " ORDER BY lease_until LIMIT ?"
        )
        return await self._read(sql, (self.now(), limit))

    async def mark_lost(self, keys: Sequence[str]) -> list[str]:
        now = self.now()
        sql = "UPDATE workers SET lost_at = ? WHERE nome = ? AND lost_at IS NULL AND lease_until < ?"
        return [key for key in keys if await self._change(sql, (now, key, now))]

    async def forget(self, leases: int) -> int:
        sql = f"DELETE FROM workers WHERE {FORGETTING.format(now='?', leases='?')}"
        return await self._change(sql, (self.now(), leases))

    async def drained(self) -> list[str]:
        rows = await self._connections.read(lambda c: fetch(c, "SELECT nome FROM workers WHERE drain IS NOT NULL", ()))
        return [key for (key,) in rows]

    async def gone(self, keys: Sequence[str]) -> list[str]:
        sql = "SELECT nome FROM workers WHERE nome IN (SELECT value FROM json_each(?)) AND lease_until < ?"
        given = (orjson.dumps(list(keys)).decode(), self.now())
        return [key for (key,) in await self._connections.read(lambda c: fetch(c, sql, given))]

    async def is_empty(self) -> bool:
        return not await self._connections.read(lambda c: fetch(c, "SELECT 1 FROM workers LIMIT 1", ()))

    async def _read(self, sql: str, given: tuple[object, ...]) -> list[StoredWorker]:
        rows = await self._connections.read(lambda c: fetch(c, sql, given))
        now = self.now()
        return [worker_of(row, now) for row in rows]

    async def _change(self, sql: str, given: tuple[object, ...]) -> int:
        def write(connection: apsw.Connection) -> int:
            with connection:
                connection.execute(sql, given)
            return connection.changes()

        return await self._connections.write(write)
