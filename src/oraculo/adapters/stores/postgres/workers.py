"""Registered workers in PostgreSQL: leases by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from oraculo.adapters.stores.postgres.arrays import Blobs, Numbers, Texts
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.worker_rows import FORGETTING, WORKER_COLUMNS, worker_of
from oraculo.core.tenants import tenant_of
from oraculo.ports.workers import StoredWorker, WorkerBeat

_MICROSECOND = timedelta(microseconds=1)
_FOUND = f"{WORKER_COLUMNS}, oraculo_now()"
_REGISTER = f"""
INSERT INTO workers (nome, tenant, body, beat, answered, failed, lease, registered_at, last_seen, lease_until)
SELECT %s, %s, %s, %s, 0, 0, %s::bigint, now, now, now + %s::bigint FROM oraculo_now() AS now
ON CONFLICT (nome) DO UPDATE SET body = excluded.body, beat = excluded.beat, lease = excluded.lease,
registered_at = excluded.registered_at, last_seen = excluded.last_seen, lease_until = excluded.lease_until,
lost_at = NULL
RETURNING {_FOUND}"""
_BEAT = """
WITH given AS (SELECT * FROM unnest(%s, %s, %s, %s, %s) AS given (nome, beat, answered, failed, last_error)),
locked AS (SELECT nome FROM workers WHERE nome IN (SELECT nome FROM given) AND lost_at IS NULL ORDER BY nome FOR UPDATE)
UPDATE workers SET last_seen = oraculo_now(), lease_until = oraculo_now() + lease,
beat = coalesce(given.beat, workers.beat), answered = workers.answered + given.answered,
failed = workers.failed + given.failed, last_error = coalesce(given.last_error, workers.last_error)
FROM given, locked WHERE workers.nome = given.nome AND workers.nome = locked.nome RETURNING workers.nome"""


class PostgresWorkers:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def register(self, key: str, body: bytes, beat: bytes, lease: timedelta) -> StoredWorker:
        length = lease // _MICROSECOND
        given = (key, tenant_of(key), body, beat, length, length)
        (found,) = await self._write(_REGISTER, given)
        return _worker(found)

    async def beat(self, beats: Sequence[WorkerBeat]) -> set[str]:
        given = (
            Texts(one.key for one in beats),
            Blobs(one.beat for one in beats),
            Numbers(one.answered for one in beats),
            Numbers(one.failed for one in beats),
            Blobs(one.last_error for one in beats),
        )
        return {key for (key,) in await self._write(_BEAT, given)}

    async def workers(self, tenant: str, after: str = "", limit: int = 1000) -> list[StoredWorker]:
        sql = f"SELECT {_FOUND} FROM workers WHERE tenant = %s AND nome > %s ORDER BY nome LIMIT %s"
        return await self._read(sql, (tenant, after, limit))

    async def worker(self, key: str) -> StoredWorker | None:
        found = await self._read(f"SELECT {_FOUND} FROM workers WHERE nome = %s", (key,))
        return found[0] if found else None

    async def drain(self, key: str, drain: bytes | None) -> bool:
        return bool(await self._write("UPDATE workers SET drain = %s WHERE nome = %s RETURNING 1", (drain, key)))

    async def remove(self, key: str) -> bool:
        return bool(await self._write("DELETE FROM workers WHERE nome = %s RETURNING 1", (key,)))

    async def expired(self, limit: int) -> list[StoredWorker]:
        sql = (
            f"SELECT {_FOUND} FROM workers WHERE lost_at IS NULL AND lease_until < (SELECT oraculo_now())"
            " ORDER BY lease_until LIMIT %s"
        )
        return await self._read(sql, (limit,))

    async def mark_lost(self, keys: Sequence[str]) -> list[str]:
        sql = (
            "UPDATE workers SET lost_at = oraculo_now() WHERE nome = ANY (%s) AND lost_at IS NULL"
            " AND lease_until < oraculo_now() RETURNING nome"
        )
        return [key for (key,) in await self._write(sql, (Texts(sorted(keys)),))]

    async def forget(self, leases: int) -> int:
        sql = f"DELETE FROM workers WHERE {FORGETTING.format(now='oraculo_now()', leases='%s')} RETURNING 1"
        return len(await self._write(sql, (leases,)))

    async def drained(self) -> list[str]:
        rows = await self._pool.read(lambda c: fetch(c, "SELECT nome FROM workers WHERE drain IS NOT NULL"))
        return [key for (key,) in rows]

    async def gone(self, keys: Sequence[str]) -> list[str]:
        sql = "SELECT nome FROM workers WHERE nome = ANY (%s) AND lease_until < oraculo_now()"
        return [key for (key,) in await self._pool.read(lambda c: fetch(c, sql, (Texts(keys),)))]

    async def is_empty(self) -> bool:
        return not await self._pool.read(lambda c: fetch(c, "SELECT 1 FROM workers LIMIT 1"))

    async def _read(self, sql: str, given: tuple[object, ...]) -> list[StoredWorker]:
        return [_worker(row) for row in await self._pool.read(lambda c: fetch(c, sql, given))]

    async def _write(self, sql: str, given: tuple[object, ...]) -> list[tuple[Any, ...]]:
        async def write(connection: Connection) -> list[tuple[Any, ...]]:
            return await fetch(connection, sql, given)

        return await self._pool.write(write)


def _worker(row: tuple[Any, ...]) -> StoredWorker:
    return worker_of(row[:-1], row[-1])
