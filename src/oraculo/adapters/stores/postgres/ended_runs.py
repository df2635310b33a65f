"""Ended orchestrations in PostgreSQL: listed in the order of their ends, and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.postgres.arrays import Numbers
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.postgres.journal import delete_runs
from oraculo.ports.ended_runs import EndedRun

_LAST = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"


async def _ended_runs(connection: Connection, after: EndedRun | None, before: datetime, limit: int) -> list[EndedRun]:
    at, run = (0, 0) if after is None else (to_micros(after.closed_at), after.run)
    rows = await fetch(
        connection,
        "SELECT run, tenant, tipo, closed_at, owes = 0 AND wake_at IS NULL FROM runs"
        " WHERE closed_at IS NOT NULL AND closed_at < %s AND closed_at >= %s AND"
        " (closed_at, run) > (%s, %s) ORDER BY closed_at, run LIMIT %s",
        (to_micros(before), at, at, run, limit),
    )
    return [EndedRun(run, tenant, tipo, from_micros(at), bool(settled)) for run, tenant, tipo, at, settled in rows]


async def _forget_runs(connection: Connection, runs: Sequence[int], read: int | None) -> int:
    """Those that another transaction has locked are left for another time."""
    cursor = await connection.execute(
        "SELECT run FROM runs WHERE run = ANY (%s) AND closed_at IS NOT NULL AND owes = 0 AND wake_at IS NULL"
        f" AND (%s::bigint IS NULL OR ({_LAST}) <= %s) FOR UPDATE SKIP LOCKED".encode(),
        (Numbers(list(runs)), read, read),
    )
    found = [row[0] for row in await cursor.fetchall()]
    await delete_runs(connection, found)
    await connection.execute("DELETE FROM sla_alerts WHERE run = ANY (%s)", (Numbers(found),))
    return len(found)


class PostgresEndedRuns:
    _pool: Pool

    async def ended_runs(self, after: EndedRun | None, before: datetime, limit: int) -> list[EndedRun]:
        return await self._pool.read(lambda c: _ended_runs(c, after, before, limit))

    async def forget_runs(self, runs: Sequence[int], read: int | None = None) -> int:
        return await self._pool.write(lambda c: _forget_runs(c, runs, read))
