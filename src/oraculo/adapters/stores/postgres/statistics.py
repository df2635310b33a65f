"""Figures over all orchestrations and messages in PostgreSQL."""

from __future__ import annotations

from datetime import datetime, timedelta

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.shared_sql import first_run, only
from oraculo.core.vocabulary import Status
from oraculo.ports.statistics import Bucket, FailingQueue


async def count_by_status(connection: Connection, tenant: str | None = None) -> dict[str, int]:
    of, values = only(tenant, "%s", "WHERE")
    rows = await fetch(connection, f"SELECT status, count(*) FROM runs{of} GROUP BY 1", values)
    return {status: count for status, count in rows}


async def activity(connection: Connection, since: datetime, step: timedelta, tenant: str | None) -> list[Bucket]:
    width = int(step.total_seconds() * 1_000_000)
    of, values = only(tenant, "%s")
    sql = f"""
    SELECT created_at / %s * %s, status, count(*) FROM runs
    WHERE run >= %s AND created_at >= %s{of} GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = await fetch(connection, sql, (width, width, first_run(since), to_micros(since), *values))
    return [Bucket(from_micros(at), Status(status), many) for at, status, many in rows]


async def failures(connection: Connection, since: datetime, tenant: str | None) -> list[FailingQueue]:
    of, values = only(tenant, "%s")
    sql = f"""
    SELECT d.destino, sum(d.failed)::bigint, count(*) FROM run_destinos AS d JOIN runs ON runs.run = d.run
    WHERE d.failed > 0 AND d.run >= %s AND runs.created_at >= %s{of} GROUP BY d.destino ORDER BY 2 DESC, 1"""
    rows = await fetch(connection, sql, (first_run(since), to_micros(since), *values))
    return [FailingQueue(destino, tickets, runs) for destino, tickets, runs in rows]


async def counts(connection: Connection) -> dict[tuple[str, str], int]:
    rows = await fetch(connection, "SELECT queue, verdict, count FROM counters")
    return {(queue, verdict): count for queue, verdict, count in rows}


async def queues(connection: Connection) -> list[str]:
    """From one name to the next through the index, however many orchestrations used each."""
    sql = """
    WITH RECURSIVE names (destino) AS (
      (SELECT destino FROM run_destinos ORDER BY destino LIMIT 1)
      UNION ALL
      SELECT (SELECT d.destino FROM run_destinos AS d WHERE d.destino > names.destino ORDER BY d.destino LIMIT 1)
      FROM names WHERE names.destino IS NOT NULL
    )
    SELECT destino FROM names WHERE destino IS NOT NULL"""
    return [queue for (queue,) in await fetch(connection, sql)]
