"""The catalogue in PostgreSQL: summaries of orchestrations, looked up by an index each."""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.adapters.stores import shared_sql
from oraculo.adapters.stores.postgres.arrays import storable
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.ports.catalogue import Query, Summary


async def summary(connection: Connection, correlation_id: str) -> Summary | None:
    if not storable(correlation_id):
        return None
    rows = await fetch(
        connection, f"SELECT {shared_sql.COLUMNS} FROM runs WHERE correlation_id = %s", (correlation_id,)
    )
    return shared_sql.summary(rows[0]) if rows else None


async def find(connection: Connection, query: Query) -> list[Summary]:
    if not _can_be(query):
        return []
    sql, values = shared_sql.selection(query, "%s")
    return [shared_sql.summary(row) for row in await fetch(connection, sql, values)]


async def count(connection: Connection, query: Query) -> int:
    if not _can_be(query):
        return 0
    sql, values = shared_sql.selection(query, "%s", "runs.run")
    ((number,),) = await fetch(connection, f"SELECT count(*) FROM ({sql}) AS found", values)
    return int(number)


async def retries(connection: Connection, run: int, limit: int) -> list[Summary]:
    found = await fetch(connection, shared_sql.retries_query("%s"), (run, limit))
    return [shared_sql.summary(row) for row in found]


async def destinations(connection: Connection, runs: Sequence[int], limit: int) -> dict[int, list[str]]:
    sql = shared_sql.destinations_query(", ".join(["%s"] * len(runs)), "%s")
    return shared_sql.by_run(await fetch(connection, sql, (*runs, limit)))


async def nearest_deadlines(connection: Connection, limit: int, tenant: str | None) -> list[Summary]:
    only, values = shared_sql.only(tenant, "%s")
    sql = f"""
    SELECT {shared_sql.COLUMNS} FROM runs
    WHERE (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL) AND closed_at IS NULL AND deadline IS NOT NULL
      AND paused_at IS NULL{only}
    ORDER BY deadline, runs.run LIMIT %s"""
    return [shared_sql.summary(row) for row in await fetch(connection, sql, (*values, limit))]


def _can_be(query: Query) -> bool:
    return storable(query.text or "") and storable(query.destino or "") and storable(query.label or "")
