"""The journal in PostgreSQL: reading it, and forgetting what ended long ago. `write` appends to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import Connection, Pool, fetch
from oraculo.adapters.stores.sealed_rows import beyond, by_run, recorded, result_of
from oraculo.adapters.stores.shared_sql import tail_condition
from oraculo.adapters.stores.unique_key_rows import FORGET_ENDED, FORGET_OLD, MARK_FORGOTTEN, READ, holder_of
from oraculo.ports.journal import Key, Live, Recorded
from oraculo.ports.unique_keys import KeyHolder
from oraculo.wire.quarantine import ATTEMPTS_USED_UP

PRUNE_BATCH_RUNS = 500
_STEPS = "SELECT run, first, at, format, events, position FROM journal"


async def locate(connection: Connection, correlation_ids: Sequence[str]) -> dict[str, int]:
    wanted = Texts(name for name in correlation_ids if storable(name))
    rows = await fetch(connection, "SELECT correlation_id, run FROM runs WHERE correlation_id = ANY (%s)", (wanted,))
    return {name: run for name, run in rows}


async def keyed(connection: Connection, keys: Sequence[str]) -> dict[str, Key]:
    wanted = Texts(key for key in keys if storable(key))
    sql = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key = ANY (%s)"
    return {row[0]: Key(*row) for row in await fetch(connection, sql, (wanted,))}


async def load(connection: Connection, runs: Sequence[int], sealing: Sealing) -> dict[int, list[Recorded]]:
    rows = await fetch(connection, f"{_STEPS} WHERE run = ANY (%s) ORDER BY run, first", (Numbers(runs),))
    return by_run(recorded(row, sealing) for row in rows)


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


async def events(connection: Connection, run: int, after: int, limit: int, sealing: Sealing) -> list[Recorded]:
    """The step that holds event `after`+1 begins at or before it."""
    start = "SELECT max(first) FROM journal WHERE run = %s AND first <= %s"
    sql = f"{_STEPS} WHERE run = %s AND first >= coalesce(({start}), 0) ORDER BY first LIMIT %s"
    rows = await fetch(connection, sql, (run, run, after + 1, limit))
    return beyond((recorded(row, sealing) for row in rows), after)


async def tail(
    connection: Connection, after: int, limit: int, tipo: str | None, limited: bool, sealing: Sealing
) -> list[Recorded]:
    only = tail_condition("%s", tipo, limited)
    sql = f"{_STEPS} WHERE position > %s{only} ORDER BY position LIMIT %s"
    rows = await fetch(connection, sql, (after, *((tipo,) if tipo else ()), limit))
    return [recorded(row, sealing) for row in rows]


async def result(connection: Connection, run: int, sealing: Sealing) -> bytes | None:
    return result_of(await fetch(connection, "SELECT body FROM results WHERE run = %s", (run,)), run, sealing)


async def key_holder(connection: Connection, run: int) -> KeyHolder | None:
    rows = await fetch(connection, f"{READ} WHERE run = %s", (run,))
    return holder_of(rows[0]) if rows else None


_TABLES = ("journal", "results", "run_destinos", "run_rotulos", "run_origins", "idempotency_keys")


async def prune_all(pool: Pool, before: datetime, limit: int, read: int | None) -> int:
    """Forget orchestrations, some in each transaction."""
    total = 0
    while total < limit:
        wanted = min(PRUNE_BATCH_RUNS, limit - total)
        removed = await pool.write(partial(prune, before=before, limit=wanted, read=read))
        total += removed
        if removed < wanted:
            break
    return total


async def prune(connection: Connection, before: datetime, limit: int, read: int | None) -> int:
    """Forget orchestrations. Those that another transaction has locked are left for another time."""
    last = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"
    cursor = await connection.execute(
        "SELECT run FROM runs WHERE closed_at < %s AND owes = 0 AND wake_at IS NULL"
        f" AND (%s::bigint IS NULL OR ({last}) <= %s) ORDER BY closed_at LIMIT %s FOR UPDATE SKIP LOCKED".encode(),
        (to_micros(before), read, read, limit),
    )
    runs = [row[0] for row in await cursor.fetchall()]
    await delete_runs(connection, runs)
    await connection.execute(
        "DELETE FROM sla_alerts WHERE at < %s"
        " AND (run IS NULL OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.run = sla_alerts.run))",
        (to_micros(before),),
    )
    return len(runs)


async def delete_runs(connection: Connection, runs: list[int]) -> None:
    """Delete all that is kept of these runs, but for the keys of requests that outlive them."""
    if not runs:
        return
    await connection.execute(
        "DELETE FROM dead_letters WHERE reason = %s AND correlation_id IN"
        " (SELECT correlation_id FROM runs WHERE run = ANY (%s))",
        (ATTEMPTS_USED_UP, Numbers(runs)),
    )
    for change in (FORGET_ENDED, MARK_FORGOTTEN):
        await connection.execute(f"{change} = ANY (%s)".encode(), (Numbers(runs),))
    await connection.execute(FORGET_OLD.encode())
    for table in (*_TABLES, "runs"):
        await connection.execute(f"DELETE FROM {table} WHERE run = ANY (%s)".encode(), (Numbers(runs),))
