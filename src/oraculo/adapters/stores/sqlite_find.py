"""What the catalogue of SQLite answers: lists, counts and figures of many orchestrations."""

from __future__ import annotations

from datetime import datetime, timedelta

import apsw

from oraculo.adapters.stores import catalogue
from oraculo.adapters.stores.catalogue import COLUMNS, first_run
from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.sqlite_read import fetch
from oraculo.core.vocabulary import Status
from oraculo.ports.store import Bucket, FailingQueue, Query, Summary


def summary(connection: apsw.Connection, correlation_id: str) -> Summary | None:
    rows = fetch(connection, f"SELECT {COLUMNS} FROM runs WHERE correlation_id = ?", (correlation_id,))
    return catalogue.summary(rows[0]) if rows else None


def find(connection: apsw.Connection, query: Query) -> list[Summary]:
    sql, values = catalogue.selection(query, "?")
    return [catalogue.summary(row) for row in fetch(connection, sql, values)]


def count(connection: apsw.Connection, query: Query) -> int:
    sql, values = catalogue.selection(query, "?", "runs.run")
    return int(fetch(connection, f"SELECT count(*) FROM ({sql})", values)[0][0])


def activity(connection: apsw.Connection, since: datetime, step: timedelta) -> list[Bucket]:
    width = int(step.total_seconds() * 1_000_000)
    sql = """
    SELECT created_at / ?1 * ?1, status, count(*) FROM runs
    WHERE run >= ?2 AND created_at >= ?3 GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = fetch(connection, sql, (width, first_run(since), to_micros(since)))
    return [Bucket(from_micros(at), Status(status), many) for at, status, many in rows]


def failures(connection: apsw.Connection, since: datetime) -> list[FailingQueue]:
    sql = """
    SELECT d.destino, sum(d.failed), count(*) FROM run_destinos AS d JOIN runs ON runs.run = d.run
    WHERE d.failed > 0 AND d.run >= ?1 AND runs.created_at >= ?2 GROUP BY d.destino ORDER BY 2 DESC, 1"""
    rows = fetch(connection, sql, (first_run(since), to_micros(since)))
    return [FailingQueue(destino, tickets, runs) for destino, tickets, runs in rows]


def nearest_deadlines(connection: apsw.Connection, limit: int) -> list[Summary]:
    sql = f"""
    SELECT {COLUMNS} FROM runs
    WHERE (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL) AND closed_at IS NULL AND deadline IS NOT NULL
    ORDER BY deadline, runs.run LIMIT ?"""
    return [catalogue.summary(row) for row in fetch(connection, sql, (limit,))]
