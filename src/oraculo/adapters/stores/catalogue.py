"""The catalogue as every SQL store has it: the row of a run, and how runs are looked for.

Every query walks an index and stops: at its limit, at the edge of its window of time, or at the end of what is open.
`run` grows with time, so a window of time is a range of the primary key. What differs between stores is the `mark` that
stands for a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.ports.store import Query, Summary

COLUMNS = (
    "runs.run, correlation_id, status, tipo, created_at, closed_at, total, open, runs.failed, fingerprint, version,"
    " deadline"
)
# A run gets its number, which holds the time, a little before it is recorded as created.
_NUMBERED_BEFORE = 600_000_000  # microseconds
_RARE = 4  # letters of a prefix from which on its index is worth more than the order of runs
_FAILED = (Status.ERRO, Status.TIMEOUT)


def row_of(state: Orchestration) -> list[Any]:
    """run, status, version, closed_at, wake_at, owes, open, failed, total: what a step may change. A plan can grow."""
    wake_at = state.wake_at()
    failed = 0 if state.closed_at is None else sum(1 for ticket in state.tickets if ticket.status in _FAILED)
    return [
        state.run,
        state.status,
        state.version,
        None if state.closed_at is None else to_micros(state.closed_at),
        None if wake_at is None else to_micros(wake_at),
        state.owes,
        state.open,
        failed,
        len(state.tickets),
    ]


def failures(state: Orchestration) -> Counter[str]:
    """Queue → tickets that failed."""
    pairs = zip(state.plan.tasks, state.tickets, strict=True)
    return Counter(task.queue for task, ticket in pairs if ticket.status in _FAILED)


def summary(row: Sequence[Any]) -> Summary:
    """Of COLUMNS."""
    run, name, status, tipo, created, closed, total, open, failed, fingerprint, version, deadline = row
    return Summary(
        run, name, Status(status), tipo, from_micros(created), from_micros_or_none(closed), total, open, failed,
        fingerprint, version, from_micros_or_none(deadline),
    )  # fmt: skip


def first_run(at: datetime) -> int:
    """No run that was created at `at` or later has a smaller number."""
    return min(max(0, to_micros(at) - _NUMBERED_BEFORE) // 1000 << 20, 2**63 - 1)


def selection(query: Query, mark: str, columns: str = COLUMNS) -> tuple[str, list[Any]]:
    """Newest first. Each status is walked on its own, through its index, so a rare one is not looked for in all."""
    if len(query.status) > 1 and query.destino is None and not query.text:
        parts = [_one(query, mark, columns, [status]) for status in dict.fromkeys(query.status)]
        union = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part{n}" for n, (sql, _) in enumerate(parts))
        values = [value for _, some in parts for value in some]
        return f"SELECT * FROM ({union}) AS found ORDER BY 1 DESC LIMIT {mark}", [*values, query.limit]
    return _one(query, mark, columns, query.status)


def _one(query: Query, mark: str, columns: str, statuses: Sequence[Status]) -> tuple[str, list[Any]]:
    source = f"SELECT {columns} FROM runs"
    where: list[str] = []
    values: list[Any] = []
    order = "runs.run"
    if query.destino is not None:
        source += " JOIN run_destinos AS d ON d.run = runs.run"
        where.append(f"d.destino = {mark}")
        values.append(query.destino)
        order = "d.run"
    for limit, sign in ((query.before_run, "<"), (query.after_run, ">")):
        if limit is not None:
            where.append(f"{order} {sign} {mark}")
            values.append(limit)
    if query.since is not None:
        where.append(f"{order} >= {mark} AND created_at >= {mark}")
        values += [first_run(query.since), to_micros(query.since)]
    if query.until is not None:
        where.append(f"{order} < {mark} AND created_at < {mark}")
        after = query.until + timedelta(microseconds=_NUMBERED_BEFORE + 1000)
        values += [first_run(after), to_micros(query.until)]
    if statuses:
        where.append(f"status IN ({', '.join([mark] * len(statuses))})")
        values += [status.value for status in statuses]
    if query.tipo is not None:
        where.append(f"tipo = {mark}")
        values.append(query.tipo)
    if query.text:
        where.append(f"correlation_id >= {mark} AND correlation_id < {mark}")
        values += [query.text, query.text + "\U0010ffff"]
        if len(query.text) >= _RARE and query.destino is None:
            order = f"+{order}"  # not by the index of runs
    sql = source + (" WHERE " + " AND ".join(where) if where else "") + f" ORDER BY {order} DESC LIMIT {mark}"
    return sql, [*values, query.limit]
