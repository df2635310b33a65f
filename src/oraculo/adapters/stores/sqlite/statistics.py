"""Figures over all orchestrations and messages in SQLite."""

from __future__ import annotations

from datetime import datetime, timedelta

import apsw

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.shared_sql import first_run, only
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.core.vocabulary import Status
from oraculo.ports.statistics import Bucket, FailingQueue


def count_by_status(connection: apsw.Connection, tenant: str | None = None) -> dict[str, int]:
    of, values = only(tenant, "?", "WHERE")
    return dict(fetch(connection, f"SELECT status, count(*) FROM runs{of} GROUP BY status", values))


def activity(connection: apsw.Connection, since: datetime, step: timedelta, tenant: str | None) -> list[Bucket]:
    width = int(step.total_seconds() * 1_000_000)
    of, values = only(tenant, "?")
    sql = f"""
    SELECT created_at / ? * ?, status, count(*) FROM runs
    WHERE run >= ? AND created_at >= ?{of} GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = fetch(connection, sql, (width, width, first_run(since), to_micros(since), *values))
    return [Bucket(from_micros(at), Status(status), many) for at, status, many in rows]


def failures(connection: apsw.Connection, since: datetime, tenant: str | None) -> list[FailingQueue]:
    of, values = only(tenant, "?")
    sql = f"""
    SELECT d.destino, sum(d.failed), count(*) FROM run_destinos AS d JOIN runs ON runs.run = d.run
    WHERE d.failed > 0 AND d.run >= ? AND runs.created_at >= ?{of} GROUP BY d.destino ORDER BY 2 DESC, 1"""
    rows = fetch(connection, sql, (first_run(since), to_micros(since), *values))
    return [FailingQueue(destino, tickets, runs) for destino, tickets, runs in rows]


def counts(connection: apsw.Connection) -> dict[tuple[str, str], int]:
    return {
        (queue, verdict): n for queue, verdict, n in fetch(connection, "SELECT queue, verdict, count FROM counters")
    }


def queues(connection: apsw.Connection) -> list[str]:
    """From one name to the next through the index, however many orchestrations used each."""
    sql = """
    WITH RECURSIVE names (destino) AS (
      SELECT min(destino) FROM run_destinos
      UNION ALL
      SELECT (SELECT min(d.destino) FROM run_destinos AS d WHERE d.destino > names.destino)
      FROM names WHERE names.destino IS NOT NULL
    )
    SELECT destino FROM names WHERE destino IS NOT NULL"""
    return [queue for (queue,) in fetch(connection, sql)]
