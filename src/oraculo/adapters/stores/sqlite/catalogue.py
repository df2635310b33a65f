"""The catalogue in SQLite: summaries of orchestrations, looked up by an index each."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from oraculo.adapters.stores import shared_sql
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.ports.catalogue import Query, Summary


def summary(connection: apsw.Connection, correlation_id: str) -> Summary | None:
    rows = fetch(connection, f"SELECT {shared_sql.COLUMNS} FROM runs WHERE correlation_id = ?", (correlation_id,))
    return shared_sql.summary(rows[0]) if rows else None


def find(connection: apsw.Connection, query: Query) -> list[Summary]:
    sql, values = shared_sql.selection(query, "?")
    return [shared_sql.summary(row) for row in fetch(connection, sql, values)]


def count(connection: apsw.Connection, query: Query) -> int:
    sql, values = shared_sql.selection(query, "?", "runs.run")
    return int(fetch(connection, f"SELECT count(*) FROM ({sql})", values)[0][0])


def retries(connection: apsw.Connection, run: int, limit: int) -> list[Summary]:
    return [shared_sql.summary(row) for row in fetch(connection, shared_sql.retries_query("?"), (run, limit))]


def destinations(connection: apsw.Connection, runs: Sequence[int], limit: int) -> dict[int, list[str]]:
    sql = shared_sql.destinations_query(", ".join("?" * len(runs)), "?")
    return shared_sql.by_run(fetch(connection, sql, (*runs, limit)))


def nearest_deadlines(connection: apsw.Connection, limit: int, tenant: str | None) -> list[Summary]:
    only, values = shared_sql.only(tenant, "?")
    sql = f"""
    SELECT {shared_sql.COLUMNS} FROM runs
    WHERE (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL) AND closed_at IS NULL AND deadline IS NOT NULL
      AND paused_at IS NULL{only}
    ORDER BY deadline, runs.run LIMIT ?"""
    return [shared_sql.summary(row) for row in fetch(connection, sql, (*values, limit))]
