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

import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros, to_micros_or_none
from oraculo.core.access import is_key_id
from oraculo.core.state import Orchestration
from oraculo.core.tenants import in_tenant, tenant_of
from oraculo.core.vocabulary import RUN_STATUSES, Status
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.cursors import Lag

COLUMNS = (
    "runs.run, correlation_id, status, tipo, created_at, closed_at, total, open, runs.failed, fingerprint, version,"
    " deadline, rotulos, paused_at"
)
# A run gets its number, which holds the time, a little before it is recorded as created.
_RUN_NUMBER_LEAD_US = 600_000_000  # microseconds
MAY_BE_LIMITED = "coalesce(runs.limited, 1) = 1"  # its plan has a ceiling, or was written before this was kept
_PREFIX_INDEX_MIN_CHARS = 4  # letters of a prefix from which on its index is worth more than the order of runs
_FAILED_STATUSES = (Status.ERRO, Status.TIMEOUT)


def row_of(state: Orchestration) -> list[Any]:
    """run, status, version, closed_at, wake_at, owes, open, failed, total: what a step may change. A plan can grow."""
    wake_at = state.wake_at()
    failed = 0 if state.closed_at is None else sum(1 for ticket in state.tickets if ticket.status in _FAILED_STATUSES)
    return [
        state.run,
        state.status,
        state.version,
        to_micros_or_none(state.closed_at),
        to_micros_or_none(wake_at),
        state.owes,
        state.open,
        failed,
        len(state.tickets),
    ]


def limited_of(state: Orchestration) -> int:
    """1 when the profile of the plan has a ceiling, else 0. It is so from the beginning to the end of a run."""
    return int(state.plan.profile.has_ceiling)


def retries_query(mark: str) -> str:
    """SQL for the runs that try another one again, the newest first; takes its number and a limit."""
    return (
        f"SELECT {COLUMNS} FROM run_origins AS o JOIN runs ON runs.run = o.run"
        f" WHERE o.origin = {mark} ORDER BY o.run DESC LIMIT {mark}"
    )


def destinations_query(marks: str, mark: str) -> str:
    """SQL for (run, queue) of some runs, queues with failures first; takes the runs and a limit."""
    return (
        f"SELECT run, destino FROM run_destinos WHERE run IN ({marks})"
        f" ORDER BY run DESC, failed DESC, destino LIMIT {mark}"
    )


def by_run(rows: Sequence[Sequence[Any]]) -> dict[int, list[str]]:
    """Of `destinations_query`."""
    found: dict[int, list[str]] = {}
    for run, queue in rows:
        found.setdefault(run, []).append(queue)
    return found


def owner_of(state: Orchestration) -> str | None:
    """The key of the store that asked for it."""
    return state.actor if state.actor is not None and is_key_id(state.actor) else None


def pause_of(state: Orchestration) -> list[Any]:
    """run, deadline, paused_at: what pauses change, of an orchestration that has been paused."""
    since = None if state.paused is None else state.paused.since
    return [state.run, to_micros_or_none(state.deadline), to_micros_or_none(since)]


def labels_of(state: Orchestration) -> str | None:
    """The labels as JSON text, None when it has none."""
    return orjson.dumps(state.plan.labels).decode() if state.plan.labels else None


def label_rows(state: Orchestration) -> list[tuple[str, int]]:
    """(label, run) by which it is looked up: labels of different tenants are different ones."""
    tenant = tenant_of(state.correlation_id) if state.plan.labels else ""
    return sorted((in_tenant(tenant, label), state.run) for label in state.plan.labels)


def failures(state: Orchestration) -> Counter[str]:
    """Queue → tickets that failed; 0 where none does any more, because they were requeued."""
    found: Counter[str] = Counter()
    for task, ticket in zip(state.plan.tasks, state.tickets, strict=True):
        if not task.queue:
            continue  # a wait, which goes to no queue
        if ticket.status in _FAILED_STATUSES:
            found[task.queue] += 1
        elif ticket.used > task.max_attempts:
            found[task.queue] += 0
    return found


def summary(row: Sequence[Any]) -> Summary:
    """Of COLUMNS."""
    run, name, status, tipo, created, closed, total, open, failed, fingerprint, version, deadline, labels, paused = row
    return Summary(
        run, name, Status(status), tipo, from_micros(created), from_micros_or_none(closed), total, open, failed,
        fingerprint, version, from_micros_or_none(deadline), () if labels is None else tuple(orjson.loads(labels)),
        from_micros_or_none(paused),
    )  # fmt: skip


def only(tenant: str | None, mark: str, word: str = "AND") -> tuple[str, list[str]]:
    """The condition that a row is of this tenant, and its value; nothing when all are meant."""
    return ("", []) if tenant is None else (f" {word} tenant = {mark}", [tenant])


def lag_query(mark: str, tipo: str | None) -> str:
    """SQL for the last position, and the position and instant of the first unread step; takes the position of the
    cursor and, if there is one, the type."""
    only = "" if tipo is None else f" AND EXISTS (SELECT 1 FROM runs WHERE runs.run = journal.run AND tipo = {mark})"
    first = f"SELECT position, at FROM journal WHERE position > {mark}{only} ORDER BY position LIMIT 1"
    return f"""
    SELECT last.position, unread.position, unread.at
    FROM (SELECT max(position) AS position FROM journal) AS last LEFT JOIN ({first}) AS unread ON true"""


def tail_condition(mark: str, tipo: str | None, limited: bool) -> str:
    """The condition that a step is of an orchestration of this type, which `mark` stands for, and may have a
    ceiling."""
    parts = ([] if tipo is None else [f"runs.tipo = {mark}"]) + ([MAY_BE_LIMITED] if limited else [])
    if not parts:
        return ""
    return f" AND EXISTS (SELECT 1 FROM runs WHERE runs.run = journal.run AND {' AND '.join(parts)})"


def lag(after: int, row: Sequence[Any]) -> Lag:
    """The row that `lag_query` gives for the cursor at `after`."""
    last, unread, at = row
    end = max(after, last or 0)
    return Lag(0 if unread is None else end - unread + 1, from_micros_or_none(at), end)


def first_run(at: datetime) -> int:
    """No run that was created at `at` or later has a smaller number."""
    return min(max(0, to_micros(at) - _RUN_NUMBER_LEAD_US) // 1000 << 20, 2**63 - 1)


def selection(query: Query, mark: str, columns: str = COLUMNS) -> tuple[str, list[Any]]:
    """Newest first. Each status is walked on its own, through the index of its tenant, so a rare one is not looked for
    in all, nor those of one tenant among those of others."""
    statuses = query.status or (() if query.tenant is None else RUN_STATUSES)
    if len(statuses) > 1 and query.destino is None and query.label is None and not query.text:
        parts = [_one(query, mark, columns, [status]) for status in dict.fromkeys(statuses)]
        union = " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part{n}" for n, (sql, _) in enumerate(parts))
        values = [value for _, some in parts for value in some]
        return f"SELECT * FROM ({union}) AS found ORDER BY 1 DESC LIMIT {mark}", [*values, query.limit]
    return _one(query, mark, columns, query.status)


def _one(query: Query, mark: str, columns: str, statuses: Sequence[Status]) -> tuple[str, list[Any]]:
    source = f"SELECT {columns} FROM runs"
    where: list[str] = []
    values: list[Any] = []
    order = "runs.run"
    if query.tenant is not None:
        where.append(f"tenant = {mark}")
        values.append(query.tenant)
    if query.destino is not None:
        source += " JOIN run_destinos AS d ON d.run = runs.run"
        where.append(f"d.destino = {mark}")
        values.append(query.destino)
        order = "d.run"
    if query.label is not None:
        source += " JOIN run_rotulos AS l ON l.run = runs.run"
        where.append(f"l.rotulo = {mark}")
        values.append(query.label if query.tenant is None else in_tenant(query.tenant, query.label))
        order = "l.run" if query.destino is None else order
    for limit, sign in ((query.before_run, "<"), (query.after_run, ">")):
        if limit is not None:
            where.append(f"{order} {sign} {mark}")
            values.append(limit)
    if query.since is not None:
        where.append(f"{order} >= {mark} AND created_at >= {mark}")
        values += [first_run(query.since), to_micros(query.since)]
    if query.until is not None:
        where.append(f"{order} < {mark} AND created_at < {mark}")
        after = query.until + timedelta(microseconds=_RUN_NUMBER_LEAD_US + 1000)
        values += [first_run(after), to_micros(query.until)]
    if statuses:
        where.append(f"status IN ({', '.join([mark] * len(statuses))})")
        values += [status.value for status in statuses]
    if query.paused is not None:
        where.append(f"paused_at IS {'NOT ' if query.paused else ''}NULL")
    if query.limited:
        where.append(MAY_BE_LIMITED)
    if query.tipo is not None:
        where.append(f"tipo = {mark}")
        values.append(query.tipo)
    if query.text:
        where.append(f"correlation_id >= {mark} AND correlation_id < {mark}")
        text = query.text if query.tenant is None else in_tenant(query.tenant, query.text)
        values += [text, text + "\U0010ffff"]
        if len(query.text) >= _PREFIX_INDEX_MIN_CHARS and query.destino is None and query.label is None:
            order = f"+{order}"  # not by the index of runs
    sql = source + (" WHERE " + " AND ".join(where) if where else "") + f" ORDER BY {order} DESC LIMIT {mark}"
    return sql, [*values, query.limit]
