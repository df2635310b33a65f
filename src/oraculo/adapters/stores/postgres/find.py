"""What the catalogue of PostgreSQL answers: lists, counts and figures of many orchestrations.

Every query walks an index and stops: at its limit, at the edge of its window of time, or at the end of what is open.
`run` grows with time, so a window of time is a range of the primary key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.adapters.stores.postgres.arrays import Texts, storable
from oraculo.adapters.stores.postgres.connections import Connection
from oraculo.adapters.stores.postgres.read import fetch
from oraculo.core.vocabulary import Status
from oraculo.ports.store import Bucket, FailingQueue, Query, Summary

_COLUMNS = (
    "runs.run, correlation_id, status, tipo, created_at, closed_at, total, open, runs.failed, fingerprint, version,"
    " deadline"
)
# A run gets its number, which holds the time, a little before it is recorded as created.
_NUMBERED_BEFORE = 600_000_000  # microseconds


def _summary(row: tuple[Any, ...]) -> Summary:
    run, name, status, tipo, created, closed, total, open, failed, fingerprint, version, deadline = row
    return Summary(
        run, name, Status(status), tipo, from_micros(created), from_micros_or_none(closed), total, open, failed,
        fingerprint, version, from_micros_or_none(deadline),
    )  # fmt: skip


async def summary(connection: Connection, correlation_id: str) -> Summary | None:
    if not storable(correlation_id):
        return None
    rows = await fetch(connection, f"SELECT {_COLUMNS} FROM runs WHERE correlation_id = %s", (correlation_id,))
    return _summary(rows[0]) if rows else None


async def find(connection: Connection, query: Query) -> list[Summary]:
    if not _can_be(query):
        return []
    sql, values = find_sql(query)
    return [_summary(row) for row in await fetch(connection, sql, values)]


async def count(connection: Connection, query: Query) -> int:
    if not _can_be(query):
        return 0
    sql, values = find_sql(query, "runs.run")
    ((number,),) = await fetch(connection, f"SELECT count(*) FROM ({sql}) AS found", values)
    return int(number)


def _can_be(query: Query) -> bool:
    return storable(query.text or "") and storable(query.destino or "")


def find_sql(query: Query, columns: str = _COLUMNS) -> tuple[str, list[Any]]:
    """Newest first. Each status is walked on its own, through its index, so a rare one is not looked for in all."""
    if len(query.status) > 1 and query.destino is None and not query.text:
        parts = [_one(query, columns, [status]) for status in dict.fromkeys(query.status)]
        union = " UNION ALL ".join(f"({sql})" for sql, _ in parts)
        values = [value for _, some in parts for value in some]
        return f"SELECT * FROM ({union}) AS found ORDER BY run DESC LIMIT %s", [*values, query.limit]
    return _one(query, columns, list(query.status))


def _one(query: Query, columns: str, statuses: list[Status]) -> tuple[str, list[Any]]:
    source = f"SELECT {columns} FROM runs"
    where: list[str] = []
    values: list[Any] = []
    order = "runs.run"
    if query.destino is not None:
        source += " JOIN run_destinos AS d ON d.run = runs.run"
        where.append("d.destino = %s")
        values.append(query.destino)
        order = "d.run"
    for limit, sign in ((query.before_run, "<"), (query.after_run, ">")):
        if limit is not None:
            where.append(f"{order} {sign} %s")
            values.append(limit)
    if query.since is not None:
        where.append(f"{order} >= %s")
        values.append(_first_run(query.since))
        where.append("created_at >= %s")
        values.append(to_micros(query.since))
    if query.until is not None:
        where.append(f"{order} < %s")
        values.append(_first_run(query.until + timedelta(microseconds=_NUMBERED_BEFORE + 1000)))
        where.append("created_at < %s")
        values.append(to_micros(query.until))
    if len(statuses) == 1:  # then the index has them in the order that is wanted
        where.append("status = %s")
        values.append(statuses[0].value)
    elif statuses:
        where.append("status = ANY (%s)")
        values.append(Texts(status.value for status in statuses))
    if query.text:
        where.append("correlation_id >= %s AND correlation_id < %s")
        values += [query.text, query.text + "\U0010ffff"]
    sql = source + (" WHERE " + " AND ".join(where) if where else "") + f" ORDER BY {order} DESC LIMIT %s"
    return sql, [*values, query.limit]


def _first_run(at: datetime) -> int:
    """No run that was created at `at` or later has a smaller number."""
    return min(max(0, to_micros(at) - _NUMBERED_BEFORE) // 1000 << 20, 2**63 - 1)


async def activity(connection: Connection, since: datetime, step: timedelta) -> list[Bucket]:
    width = int(step.total_seconds() * 1_000_000)
    sql = """
    SELECT created_at / %s * %s, status, count(*) FROM runs
    WHERE run >= %s AND created_at >= %s GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = await fetch(connection, sql, (width, width, _first_run(since), to_micros(since)))
    return [Bucket(from_micros(at), Status(status), many) for at, status, many in rows]


async def failures(connection: Connection, since: datetime) -> list[FailingQueue]:
    sql = """
    SELECT d.destino, sum(d.failed)::bigint, count(*) FROM run_destinos AS d JOIN runs ON runs.run = d.run
    WHERE d.failed > 0 AND d.run >= %s AND runs.created_at >= %s GROUP BY d.destino ORDER BY 2 DESC, 1"""
    rows = await fetch(connection, sql, (_first_run(since), to_micros(since)))
    return [FailingQueue(destino, tickets, runs) for destino, tickets, runs in rows]


async def nearest_deadlines(connection: Connection, limit: int) -> list[Summary]:
    sql = f"""
    SELECT {_COLUMNS} FROM runs
    WHERE (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL) AND closed_at IS NULL AND deadline IS NOT NULL
    ORDER BY deadline, runs.run LIMIT %s"""
    return [_summary(row) for row in await fetch(connection, sql, (limit,))]
