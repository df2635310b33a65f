"""What the catalogue of SQLite answers: lists, counts and figures of many orchestrations.

Every query walks an index and stops: at its limit, at the edge of its window of time, or at the end of what is open.
`run` grows with time, so a window of time is a range of the primary key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import apsw

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.adapters.stores.sqlite_read import fetch
from oraculo.core.vocabulary import Status
from oraculo.ports.store import Bucket, FailingQueue, Query, Summary

_COLUMNS = (
    "runs.run, correlation_id, status, tipo, created_at, closed_at, total, open, runs.failed, fingerprint, version,"
    " deadline"
)
# A run gets its number, which holds the time, a little before it is recorded as created.
_NUMBERED_BEFORE = 600_000_000  # microseconds
_RARE = 4  # letters of a prefix from which on its index is worth more than the order of runs


def _summary(row: tuple[Any, ...]) -> Summary:
    run, name, status, tipo, created, closed, total, open, failed, fingerprint, version, deadline = row
    return Summary(
        run, name, Status(status), tipo, from_micros(created), from_micros_or_none(closed), total, open, failed,
        fingerprint, version, from_micros_or_none(deadline),
    )  # fmt: skip


def summary(connection: apsw.Connection, correlation_id: str) -> Summary | None:
    rows = fetch(connection, f"SELECT {_COLUMNS} FROM runs WHERE correlation_id = ?", (correlation_id,))
    return _summary(rows[0]) if rows else None


def find(connection: apsw.Connection, query: Query) -> list[Summary]:
    sql, values = _selection(query, _COLUMNS)
    return [_summary(row) for row in fetch(connection, sql, values)]


def count(connection: apsw.Connection, query: Query) -> int:
    sql, values = _selection(query, "runs.run")
    return int(fetch(connection, f"SELECT count(*) FROM ({sql})", values)[0][0])


def _selection(query: Query, columns: str) -> tuple[str, list[object]]:
    """Newest first. Each status is walked on its own, through its index, so a rare one is not looked for in all."""
    if len(query.status) > 1 and query.destino is None and not query.text:
        parts = [_one(query, columns, [status]) for status in dict.fromkeys(query.status)]
        union = " UNION ALL ".join(f"SELECT * FROM ({sql})" for sql, _ in parts)
        values = [value for _, some in parts for value in some]
        return f"SELECT * FROM ({union}) ORDER BY 1 DESC LIMIT ?", [*values, query.limit]
    return _one(query, columns, query.status)


def _one(query: Query, columns: str, statuses: Any) -> tuple[str, list[object]]:
    source = f"SELECT {columns} FROM runs"
    where: list[str] = []
    values: list[object] = []
    order = "runs.run"
    if query.destino is not None:
        source += " JOIN run_destinos AS d ON d.run = runs.run"
        where.append("d.destino = ?")
        values.append(query.destino)
        order = "d.run"
    for limit, sign in ((query.before_run, "<"), (query.after_run, ">")):
        if limit is not None:
            where.append(f"{order} {sign} ?")
            values.append(limit)
    if query.since is not None:
        where.append(f"{order} >= ?")
        values.append(_first_run(query.since))
        where.append("created_at >= ?")
        values.append(to_micros(query.since))
    if query.until is not None:
        where.append(f"{order} < ?")
        values.append(_first_run(query.until + timedelta(microseconds=_NUMBERED_BEFORE + 1000)))
        where.append("created_at < ?")
        values.append(to_micros(query.until))
    if statuses:
        where.append(f"status IN ({', '.join('?' * len(statuses))})")
        values += [status.value for status in statuses]
    if query.text:
        where.append("correlation_id >= ? AND correlation_id < ?")
        values += [query.text, query.text + "\U0010ffff"]
        if len(query.text) >= _RARE and query.destino is None:
            order = f"+{order}"
    sql = source + (" WHERE " + " AND ".join(where) if where else "") + f" ORDER BY {order} DESC LIMIT ?"
    return sql, [*values, query.limit]


def _first_run(at: datetime) -> int:
    """No run that was created at `at` or later has a smaller number."""
    return min(max(0, to_micros(at) - _NUMBERED_BEFORE) // 1000 << 20, 2**63 - 1)


def activity(connection: apsw.Connection, since: datetime, step: timedelta) -> list[Bucket]:
    width = int(step.total_seconds() * 1_000_000)
    sql = """
    SELECT created_at / ?1 * ?1, status, count(*) FROM runs
    WHERE run >= ?2 AND created_at >= ?3 GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = fetch(connection, sql, (width, _first_run(since), to_micros(since)))
    return [Bucket(from_micros(at), Status(status), many) for at, status, many in rows]


def failures(connection: apsw.Connection, since: datetime) -> list[FailingQueue]:
    sql = """
    SELECT d.destino, sum(d.failed), count(*) FROM run_destinos AS d JOIN runs ON runs.run = d.run
    WHERE d.failed > 0 AND d.run >= ?1 AND runs.created_at >= ?2 GROUP BY d.destino ORDER BY 2 DESC, 1"""
    rows = fetch(connection, sql, (_first_run(since), to_micros(since)))
    return [FailingQueue(destino, tickets, runs) for destino, tickets, runs in rows]


def nearest_deadlines(connection: apsw.Connection, limit: int) -> list[Summary]:
    sql = f"""
    SELECT {_COLUMNS} FROM runs
    WHERE (closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL) AND closed_at IS NULL AND deadline IS NOT NULL
    ORDER BY deadline, runs.run LIMIT ?"""
    return [_summary(row) for row in fetch(connection, sql, (limit,))]
