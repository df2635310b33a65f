"""The journal in SQLite: reading it, and forgetting what ended long ago. `write` appends to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw
import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.adapters.stores.sqlite.connections import fetch, json_list
from oraculo.ports.journal import Key, Live, LockedSnapshot, LockRequest, Recorded
from oraculo.wire import records
from oraculo.wire.quarantine import ATTEMPTS_USED_UP

_STEPS = "SELECT run, first, at, format, events, position FROM journal"


def snapshot(connection: apsw.Connection, request: LockRequest) -> LockedSnapshot:
    runs = locate(connection, request.names) if request.names else {}
    used = keyed(connection, request.keys) if request.keys else {}
    strange = {run for run, version in request.known.items() if not version}
    strange.update(runs.values(), (key.run for key in used.values() if not request.known.get(key.run)))
    news = load(connection, sorted(strange)) if strange else {}
    return LockedSnapshot(None, runs, used, news, [run for run in strange if run not in news])


def locate(connection: apsw.Connection, correlation_ids: Sequence[str]) -> dict[str, int]:
    sql = "SELECT correlation_id, run FROM runs WHERE correlation_id IN (SELECT value FROM json_each(?))"
    return dict(fetch(connection, sql, (json_list(correlation_ids),)))


def keyed(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Key]:
    sql = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key IN (SELECT value FROM json_each(?))"
    return {row[0]: Key(*row) for row in fetch(connection, sql, (json_list(keys),))}


def load(connection: apsw.Connection, runs: Sequence[int]) -> dict[int, list[Recorded]]:
    loaded: dict[int, list[Recorded]] = {}
    sql = f"{_STEPS} WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run, first"
    for row in fetch(connection, sql, (json_list(runs),)):
        loaded.setdefault(row[0], []).append(_recorded(row))
    return loaded


def live(connection: apsw.Connection) -> list[Live]:
    rows = fetch(
        connection,
        "SELECT run, correlation_id, wake_at, owes, closed_at IS NULL FROM runs"
        " WHERE closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL ORDER BY run",
    )
    return [Live(run, name, from_micros_or_none(wake), owes, bool(is_open)) for run, name, wake, owes, is_open in rows]


def last_instant(connection: apsw.Connection) -> datetime | None:
    row = fetch(connection, "SELECT at FROM journal ORDER BY position DESC LIMIT 1")
    return from_micros(row[0][0]) if row else None


def events(connection: apsw.Connection, run: int, after: int, limit: int) -> list[Recorded]:
    """The step that holds event `after`+1 begins at or before it."""
    start = "SELECT max(first) FROM journal WHERE run = ?1 AND first <= ?2"
    sql = f"{_STEPS} WHERE run = ?1 AND first >= ifnull(({start}), 0) ORDER BY first LIMIT ?3"
    steps = [_recorded(row) for row in fetch(connection, sql, (run, after + 1, limit))]
    return [step for step in steps if step.first + len(step.events) > after + 1]


def tail(connection: apsw.Connection, after: int, limit: int, tipo: str | None) -> list[Recorded]:
    only = "" if tipo is None else " AND EXISTS (SELECT 1 FROM runs WHERE runs.run = journal.run AND runs.tipo = ?3)"
    sql = f"{_STEPS} WHERE position > ?1{only} ORDER BY position LIMIT ?2"
    return [_recorded(row) for row in fetch(connection, sql, (after, limit) if tipo is None else (after, limit, tipo))]


def result(connection: apsw.Connection, run: int) -> bytes | None:
    rows = fetch(connection, "SELECT body FROM results WHERE run = ?", (run,))
    return rows[0][0].encode() if rows else None


def prune(connection: apsw.Connection, before: datetime, limit: int, read: int | None) -> int:
    last = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"
    with connection:
        runs = connection.execute(
            "SELECT run FROM runs WHERE closed_at < ?1 AND owes = 0 AND wake_at IS NULL"
            f" AND (?3 IS NULL OR ({last}) <= ?3) ORDER BY closed_at LIMIT ?2",
            (to_micros(before), limit, read),
        ).fetchall()
        chosen = (orjson.dumps([run for (run,) in runs]).decode(),)
        connection.execute(
            "DELETE FROM dead_letters WHERE reason = ? AND correlation_id IN"
            " (SELECT correlation_id FROM runs WHERE run IN (SELECT value FROM json_each(?)))",
            (ATTEMPTS_USED_UP, *chosen),
        )
        for table in ("journal", "results", "run_destinos", "run_rotulos", "run_origins", "runs"):
            connection.execute(f"DELETE FROM {table} WHERE run IN (SELECT value FROM json_each(?))", chosen)
        connection.execute(
            "DELETE FROM idempotency_keys WHERE at < ? AND run NOT IN (SELECT run FROM runs)", (to_micros(before),)
        )
    return len(runs)


def _recorded(row: tuple[Any, ...]) -> Recorded:
    run, first, at, format, events, position = row
    return Recorded(run, first, from_micros(at), records.decode(events, format), position, events)
