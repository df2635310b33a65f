"""What the catalogue of PostgreSQL answers: lists, counts and figures of many orchestrations."""

from __future__ import annotations

from datetime import datetime, timedelta

from oraculo.adapters.stores import catalogue
from oraculo.adapters.stores.catalogue import COLUMNS, first_run
from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.postgres.arrays import storable
from oraculo.adapters.stores.postgres.connections import Connection
from oraculo.adapters.stores.postgres.read import fetch
from oraculo.core.vocabulary import Status
from oraculo.ports.store import Bucket, FailingQueue, Query, Summary


async def summary(connection: Connection, correlation_id: str) -> Summary | None:
    if not storable(correlation_id):
        return None
    rows = await fetch(connection, f"SELECT {COLUMNS} FROM runs WHERE correlation_id = %s", (correlation_id,))
    return catalogue.summary(rows[0]) if rows else None


async def find(connection: Connection, query: Query) -> list[Summary]:
    if not _can_be(query):
        return []
    sql, values = catalogue.selection(query, "%s")
    return [catalogue.summary(row) for row in await fetch(connection, sql, values)]


async def count(connection: Connection, query: Query) -> int:
    if not _can_be(query):
        return 0
    sql, values = catalogue.selection(query, "%s", "runs.run")
    ((number,),) = await fetch(connection, f"SELECT count(*) FROM ({sql}) AS found", values)
    return int(number)


def _can_be(query: Query) -> bool:
    return storable(query.text or "") and storable(query.destino or "")


async def activity(connection: Connection, since: datetime, step: timedelta) -> list[Bucket]:
    width = int(step.total_seconds() * 1_000_000)
    sql = """
    SELECT created_at / %s * %s, status, count(*) FROM runs
    WHERE run >= %s AND created_at >= %s GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = await fetch(connection, sql, (width, width, first_run(since), to_micros(since)))
    return [Bucket(from_micros(at), Status(status), many) for at, status, many in rows]


async def failures(connection: Connection, since: datetime) -> list[FailingQueue]:
    sql = """
    SELECT d.destino, sum(d.failed)::bigint, count(*) FROM run_destinos AS d JOIN runs ON runs.run = d.run
    WHERE d.failed > 0 AND d.run >= %s AND runs.created_at >= %s GROUP BY d.destino ORDER BY 2 DESC, 1"""
    rows = await fetch(connection, sql, (first_run(since), to_micros(since)))
    return [FailingQueue(destino, tickets, runs) for destino, tickets, runs in rows]


async def nearest_deadlines(connection: Connection, limit: int) -> list[Summary]:
    sql = f"""
    SELECT {COLUMNS} FROM runs
    WHERE (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL) AND closed_at IS NULL AND deadline IS NOT NULL
    ORDER BY deadline, runs.run LIMIT %s"""
    return [catalogue.summary(row) for row in await fetch(connection, sql, (limit,))]
