"""The journal in SQLite: reading it, and forgetting what ended long ago. `write` appends to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import apsw

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.adapters.stores.sealed_rows import beyond, by_run, recorded, result_of
from oraculo.adapters.stores.shared_sql import tail_condition
from oraculo.adapters.stores.sqlite.connections import fetch, json_list
from oraculo.adapters.stores.sqlite.ended_runs import delete_runs
from oraculo.adapters.stores.unique_key_rows import NEWEST, READ, holder_of
from oraculo.ports.journal import Key, Live, LockedSnapshot, LockRequest, Recorded
from oraculo.ports.unique_keys import KeyHolder

_STEPS = "SELECT run, first, at, format, events, position FROM journal"


def snapshot(connection: apsw.Connection, request: LockRequest, sealing: Sealing) -> LockedSnapshot:
    runs = locate(connection, request.names) if request.names else {}
    used = keyed(connection, request.keys) if request.keys else {}
    strange = {run for run, version in request.known.items() if not version}
    strange.update(runs.values(), (key.run for key in used.values() if not request.known.get(key.run)))
    news = load(connection, sorted(strange), sealing) if strange else {}
    held = holders(connection, request.unique) if request.unique else {}
    return LockedSnapshot(None, runs, used, news, [run for run in strange if run not in news], held)


def locate(connection: apsw.Connection, correlation_ids: Sequence[str]) -> dict[str, int]:
    sql = "SELECT correlation_id, run FROM runs WHERE correlation_id IN (SELECT value FROM json_each(?))"
    return dict(fetch(connection, sql, (json_list(correlation_ids),)))


def keyed(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Key]:
    sql = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key IN (SELECT value FROM json_each(?))"
    return {row[0]: Key(*row) for row in fetch(connection, sql, (json_list(keys),))}


def holders(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, KeyHolder]:
    rows = fetch(connection, f"{READ} WHERE run IN (SELECT ({NEWEST}) FROM json_each(?) AS k)", (json_list(keys),))
    return {one.key: one for one in map(holder_of, rows)}


def key_holder(connection: apsw.Connection, run: int) -> KeyHolder | None:
    rows = fetch(connection, f"{READ} WHERE run = ?", (run,))
    return holder_of(rows[0]) if rows else None


def load(connection: apsw.Connection, runs: Sequence[int], sealing: Sealing) -> dict[int, list[Recorded]]:
    sql = f"{_STEPS} WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run, first"
    return by_run(recorded(row, sealing) for row in fetch(connection, sql, (json_list(runs),)))


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


def events(connection: apsw.Connection, run: int, after: int, limit: int, sealing: Sealing) -> list[Recorded]:
    """The step that holds event `after`+1 begins at or before it."""
    start = "SELECT max(first) FROM journal WHERE run = ?1 AND first <= ?2"
    sql = f"{_STEPS} WHERE run = ?1 AND first >= ifnull(({start}), 0) ORDER BY first LIMIT ?3"
    return beyond((recorded(row, sealing) for row in fetch(connection, sql, (run, after + 1, limit))), after)


def tail(
    connection: apsw.Connection, after: int, limit: int, tipo: str | None, limited: bool, sealing: Sealing
) -> list[Recorded]:
    only = tail_condition("?3", tipo, limited)
    sql = f"{_STEPS} WHERE position > ?1{only} ORDER BY position LIMIT ?2"
    values = (after, limit) if tipo is None else (after, limit, tipo)
    return [recorded(row, sealing) for row in fetch(connection, sql, values)]


def result(connection: apsw.Connection, run: int, sealing: Sealing) -> bytes | None:
    return result_of(fetch(connection, "SELECT body FROM results WHERE run = ?", (run,)), run, sealing)


def prune(connection: apsw.Connection, before: datetime, limit: int, read: int | None) -> int:
    last = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"
    with connection:
        runs = connection.execute(
            "SELECT run FROM runs WHERE closed_at < ?1 AND owes = 0 AND wake_at IS NULL"
            f" AND (?3 IS NULL OR ({last}) <= ?3) ORDER BY closed_at LIMIT ?2",
            (to_micros(before), limit, read),
        ).fetchall()
        delete_runs(connection, [int(str(run)) for (run,) in runs])
        connection.execute(
            "DELETE FROM sla_alerts WHERE at < ? AND (run IS NULL OR run NOT IN (SELECT run FROM runs))",
            (to_micros(before),),
        )
        connection.execute(
            "DELETE FROM idempotency_keys WHERE at < ? AND run NOT IN (SELECT run FROM runs)", (to_micros(before),)
        )
    return len(runs)
