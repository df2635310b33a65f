"""The journal in PostgreSQL: reading it, and forgetting what ended long ago. `write` appends to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.ports.journal import Key, Live, Recorded
from oraculo.wire import records
from oraculo.wire.quarantine import ATTEMPTS_USED_UP

_STEPS = "SELECT run, first, at, format, events, position FROM journal"


async def locate(connection: Connection, correlation_ids: Sequence[str]) -> dict[str, int]:
    wanted = Texts(name for name in correlation_ids if storable(name))
    rows = await fetch(connection, "SELECT correlation_id, run FROM runs WHERE correlation_id = ANY (%s)", (wanted,))
    return {name: run for name, run in rows}


async def keyed(connection: Connection, keys: Sequence[str]) -> dict[str, Key]:
    wanted = Texts(key for key in keys if storable(key))
    sql = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key = ANY (%s)"
    return {row[0]: Key(*row) for row in await fetch(connection, sql, (wanted,))}


async def load(connection: Connection, runs: Sequence[int]) -> dict[int, list[Recorded]]:
    loaded: dict[int, list[Recorded]] = {}
    for row in await fetch(connection, f"{_STEPS} WHERE run = ANY (%s) ORDER BY run, first", (Numbers(runs),)):
        loaded.setdefault(row[0], []).append(recorded(row))
    return loaded


async def live(connection: Connection) -> list[Live]:
    rows = await fetch(
        connection,
        "SELECT run, correlation_id, wake_at, owes, closed_at IS NULL FROM runs"
        " WHERE closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL ORDER BY run",
    )
    return [Live(run, name, from_micros_or_none(wake), owes, is_open) for run, name, wake, owes, is_open in rows]


async def last_instant(connection: Connection) -> datetime | None:
    rows = await fetch(connection, "SELECT at FROM journal ORDER BY position DESC LIMIT 1")
    return from_micros(rows[0][0]) if rows else None


async def events(connection: Connection, run: int, after: int, limit: int) -> list[Recorded]:
    """The step that holds event `after`+1 begins at or before it."""
    start = "SELECT max(first) FROM journal WHERE run = %s AND first <= %s"
    sql = f"{_STEPS} WHERE run = %s AND first >= coalesce(({start}), 0) ORDER BY first LIMIT %s"
    steps = [recorded(row) for row in await fetch(connection, sql, (run, run, after + 1, limit))]
    return [step for step in steps if step.first + len(step.events) > after + 1]


async def tail(connection: Connection, after: int, limit: int, tipo: str | None) -> list[Recorded]:
    only = "" if tipo is None else " AND EXISTS (SELECT 1 FROM runs WHERE runs.run = journal.run AND runs.tipo = %s)"
    sql = f"{_STEPS} WHERE position > %s{only} ORDER BY position LIMIT %s"
    return [recorded(row) for row in await fetch(connection, sql, (after, *((tipo,) if tipo else ()), limit))]


async def result(connection: Connection, run: int) -> bytes | None:
    rows = await fetch(connection, "SELECT body FROM results WHERE run = %s", (run,))
    return rows[0][0].encode() if rows else None


_TABLES = ("journal", "results", "run_destinos", "run_rotulos", "run_origins", "idempotency_keys")


async def prune(connection: Connection, before: datetime, limit: int, read: int | None) -> int:
    """Forget orchestrations. Those that another transaction has locked are left for another time."""
    last = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"
    cursor = await connection.execute(
        "SELECT run FROM runs WHERE closed_at < %s AND owes = 0 AND wake_at IS NULL"
        f" AND (%s::bigint IS NULL OR ({last}) <= %s) ORDER BY closed_at LIMIT %s FOR UPDATE SKIP LOCKED".encode(),
        (to_micros(before), read, read, limit),
    )
    runs = [row[0] for row in await cursor.fetchall()]
    if runs:
        await connection.execute(
            "DELETE FROM dead_letters WHERE reason = %s AND correlation_id IN"
            " (SELECT correlation_id FROM runs WHERE run = ANY (%s))",
            (ATTEMPTS_USED_UP, Numbers(runs)),
        )
        for table in (*_TABLES, "runs"):
            await connection.execute(f"DELETE FROM {table} WHERE run = ANY (%s)".encode(), (Numbers(runs),))
    return len(runs)


def recorded(row: tuple[Any, ...]) -> Recorded:
    run, first, at, format, events, position = row
    return Recorded(run, first, from_micros(at), records.decode(events, format), position, events)
