"""What is written to SQLite, and how: one JSON text per table and batch.

`statements` runs in the event loop and takes a picture of the states as they are after their steps; `apply` runs in the
writer thread and touches nothing but the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import apsw
import orjson

from oraculo.adapters.stores import catalogue
from oraculo.adapters.stores.instants import to_micros
from oraculo.core.events import OrchestrationStarted
from oraculo.core.state import Orchestration
from oraculo.errors import StoreUnavailableError
from oraculo.ports.store import Batch, SystemEvent
from oraculo.wire import records

_JOURNAL = """
INSERT INTO journal (run, first, at, events)
SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(?)"""
_NEW_RUNS = """
INSERT INTO runs (run, status, version, closed_at, wake_at, owes, open, failed, total,
                  correlation_id, fingerprint, tipo, created_at, deadline)
SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
       value->>10, value->>11, value->>12, value->>13, value->>14 FROM json_each(?)"""
_DESTINOS = "INSERT OR IGNORE INTO run_destinos (destino, run) SELECT value->>0, value->>1 FROM json_each(?)"
_FAILURES = """
UPDATE run_destinos SET failed = j.value->>2
FROM json_each(?) AS j WHERE destino = j.value->>0 AND run_destinos.run = j.value->>1"""
# The version that the step was decided on is part of the condition: whoever lost a race changes nothing.
_RUNS = """
UPDATE runs SET status = j.value->>1, version = j.value->>2, closed_at = j.value->>3, wake_at = j.value->>4,
                owes = j.value->>5, open = j.value->>6, failed = j.value->>7, total = j.value->>8
FROM json_each(?) AS j WHERE runs.run = j.value->>0 AND runs.version = j.value->>9"""
_RESULTS = "INSERT INTO results (run, body) SELECT value->>0, value->>1 FROM json_each(?)"
_KEYS = """
INSERT INTO idempotency_keys (key, fingerprint, run, at)
SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(?)"""
_COUNTS = """
INSERT INTO counters (queue, verdict, count) SELECT value->>0, value->>1, value->>2 FROM json_each(?) WHERE true
ON CONFLICT (queue, verdict) DO UPDATE SET count = count + excluded.count"""
_DEAD = """
INSERT INTO dead_letters (queue, reason, detail, correlation_id, headers, body, at) VALUES (?, ?, ?, ?, ?, ?, ?)"""

Statement = tuple[str, str, int | None]  # SQL, rows as JSON, how many rows it must change


class Statements:
    __slots__ = ("dead", "rows")

    def __init__(self, rows: list[Statement], dead: list[tuple[object, ...]]) -> None:
        self.rows = rows
        self.dead = dead


def statements(batch: Batch) -> Statements:
    journal: list[bytes] = []
    new: list[list[object]] = []
    changed: list[list[object]] = []
    destinos: list[list[object]] = []
    failures: list[list[object]] = []
    latest: dict[int, tuple[Orchestration, int]] = {}
    born: set[int] = set()
    for step in batch.steps:
        state = step.state
        journal.append(b"[%d,%d,%d,%b]" % (state.run, step.first, to_micros(step.at), records.encode(step.events)))
        if state.run not in latest:
            latest[state.run] = (state, step.first - 1)
            if isinstance(step.events[0], OrchestrationStarted):
                born.add(state.run)
    for run, (state, expected) in latest.items():
        row = [*catalogue.row_of(state), expected]
        if run in born:
            plan = state.plan
            row += [state.correlation_id, state.fingerprint, plan.tipo, to_micros(state.started_at)]
            row.append(to_micros(state.deadline))
            new.append(row)
            destinos.extend([queue, run] for queue in {task.queue for task in plan.tasks})
        else:
            changed.append(row)
        if row[7]:
            failures.extend([queue, run, count] for queue, count in catalogue.failures(state).items())
    at = to_micros(batch.at)
    tables: list[tuple[str, list[list[object]], bool]] = [
        (_NEW_RUNS, new, True),
        (_DESTINOS, destinos, False),
        (_FAILURES, failures, False),
        (_RUNS, changed, True),
        (_KEYS, [[key.key, key.fingerprint, key.run, at] for key in batch.keys], True),
        (_COUNTS, [[queue, verdict, count] for (queue, verdict), count in batch.counts.items()], False),
    ]
    rows: list[Statement] = [
        (sql, orjson.dumps(table).decode(), len(table) if exact else None) for sql, table, exact in tables if table
    ]
    # Documents are JSON already: they are put in as they are, and SQLite, on the other core, takes them apart.
    results = [b"[%d,%b]" % (run, body) for run, body in batch.results.items()]
    for sql, documents in ((_JOURNAL, journal), (_RESULTS, results)):
        if documents:
            rows.append((sql, f"[{b','.join(documents).decode()}]", len(documents)))
    dead: list[tuple[object, ...]] = [
        (d.queue, d.reason, d.detail, d.correlation_id, orjson.dumps(d.headers).decode(), d.body, at)
        for d in batch.dead
    ]
    return Statements(rows, dead)


def apply(connection: apsw.Connection, what: Statements) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql, rows, expected in what.rows:
            connection.execute(sql, (rows,))
            if expected is not None and connection.changes() != expected:
                raise StoreUnavailableError(
                    f"{connection.changes()} of {expected} rows were written: another process changed an orchestration"
                )
        for row in what.dead:
            connection.execute(_DEAD, row)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def remove_dead_letters(connection: apsw.Connection, ids: Sequence[int], outcome: str) -> int:
    with connection:
        gone = connection.execute(
            "DELETE FROM dead_letters WHERE id IN (SELECT value FROM json_each(?)) RETURNING queue",
            (orjson.dumps(list(ids)).decode(),),
        ).fetchall()
        for (queue,) in gone:
            connection.execute(
                "INSERT INTO counters VALUES (?, ?, 1) ON CONFLICT (queue, verdict) DO UPDATE SET count = count + 1",
                (queue, outcome),
            )
    return len(gone)


def record_system_event(connection: apsw.Connection, event: SystemEvent) -> None:
    with connection:
        connection.execute(
            "INSERT INTO system_events (at, kind, body) VALUES (?, ?, ?)",
            (to_micros(event.at), event.kind, orjson.dumps(event.body).decode()),
        )


def put_task_type(connection: apsw.Connection, tipo: str, body: bytes, at: datetime) -> None:
    with connection:
        connection.execute(
            "INSERT INTO task_types VALUES (?, ?, ?)"
            " ON CONFLICT (tipo) DO UPDATE SET body = excluded.body, at = excluded.at",
            (tipo, body.decode(), to_micros(at)),
        )


def remove_task_type(connection: apsw.Connection, tipo: str) -> bool:
    with connection:
        connection.execute("DELETE FROM task_types WHERE tipo = ?", (tipo,))
    return connection.changes() == 1


def claim_cursor(connection: apsw.Connection, name: str) -> int:
    """Only one process ever moves it: who runs on a file has it to itself."""
    sql = "INSERT INTO cursors VALUES (?, 0) ON CONFLICT (name) DO UPDATE SET position = position RETURNING position"
    with connection:
        ((position,),) = connection.execute(sql, (name,)).fetchall()
    return int(str(position))


def move_cursor(connection: apsw.Connection, name: str, to: int) -> None:
    with connection:
        connection.execute("UPDATE cursors SET position = max(position, ?) WHERE name = ?", (to, name))


def prune(connection: apsw.Connection, before: datetime, limit: int, read: int | None) -> int:
    last = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"
    with connection:
        runs = connection.execute(
            "SELECT run FROM runs WHERE closed_at < ?1 AND owes = 0 AND wake_at IS NULL"
            f" AND (?3 IS NULL OR ({last}) <= ?3) ORDER BY closed_at LIMIT ?2",
            (to_micros(before), limit, read),
        ).fetchall()
        chosen = (orjson.dumps([run for (run,) in runs]).decode(),)
        for table in ("journal", "results", "run_destinos", "runs"):
            connection.execute(f"DELETE FROM {table} WHERE run IN (SELECT value FROM json_each(?))", chosen)
        connection.execute(
            "DELETE FROM idempotency_keys WHERE at < ? AND run NOT IN (SELECT run FROM runs)", (to_micros(before),)
        )
    return len(runs)
