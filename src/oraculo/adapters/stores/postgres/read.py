"""What is read from PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import Connection
from oraculo.ports.store import DeadLetter, Key, Live, Recorded, SystemEvent
from oraculo.wire import records

_STEP = "SELECT run, first, at, format, events, position FROM journal"
_DEAD = "SELECT id, queue, reason, detail, correlation_id, headers, body, at FROM dead_letters"


async def fetch(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return await (await connection.execute(sql.encode(), values)).fetchall()


async def locate(connection: Connection, correlation_ids: Sequence[str]) -> dict[str, int]:
    wanted = Texts(name for name in correlation_ids if storable(name))
    rows = await fetch(connection, "SELECT correlation_id, run FROM runs WHERE correlation_id = ANY (%s)", (wanted,))
    return {name: run for name, run in rows}


async def keyed(connection: Connection, keys: Sequence[str]) -> dict[str, Key]:
    wanted = Texts(key for key in keys if storable(key))
    sql = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key = ANY (%s)"
    return {row[0]: Key(*row) for row in await fetch(connection, sql, (wanted,))}


def recorded(row: tuple[Any, ...]) -> Recorded:
    run, first, at, format, events, position = row
    return Recorded(run, first, from_micros(at), records.decode(events, format), position, events)


async def load(connection: Connection, runs: Sequence[int]) -> dict[int, list[Recorded]]:
    loaded: dict[int, list[Recorded]] = {}
    for row in await fetch(connection, f"{_STEP} WHERE run = ANY (%s) ORDER BY run, first", (Numbers(runs),)):
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
    sql = f"{_STEP} WHERE run = %s AND first >= coalesce(({start}), 0) ORDER BY first LIMIT %s"
    steps = [recorded(row) for row in await fetch(connection, sql, (run, run, after + 1, limit))]
    return [step for step in steps if step.first + len(step.events) > after + 1]


async def tail(connection: Connection, after: int, limit: int, tipo: str | None) -> list[Recorded]:
    only = "" if tipo is None else " AND EXISTS (SELECT 1 FROM runs WHERE runs.run = journal.run AND runs.tipo = %s)"
    sql = f"{_STEP} WHERE position > %s{only} ORDER BY position LIMIT %s"
    return [recorded(row) for row in await fetch(connection, sql, (after, *((tipo,) if tipo else ()), limit))]


async def result(connection: Connection, run: int) -> bytes | None:
    rows = await fetch(connection, "SELECT body FROM results WHERE run = %s", (run,))
    return rows[0][0].encode() if rows else None


async def count_by_status(connection: Connection) -> dict[str, int]:
    return {status: count for status, count in await fetch(connection, "SELECT status, count(*) FROM runs GROUP BY 1")}


async def counts(connection: Connection) -> dict[tuple[str, str], int]:
    rows = await fetch(connection, "SELECT queue, verdict, count FROM counters")
    return {(queue, verdict): count for queue, verdict, count in rows}


def _dead(row: tuple[Any, ...]) -> DeadLetter:
    id, queue, reason, detail, correlation_id, headers, body, at = row
    return DeadLetter(queue, reason, detail, body, correlation_id, orjson.loads(headers), id, from_micros(at))


async def dead_letters(
    connection: Connection, before: int | None, limit: int, queue: str | None, reason: str | None
) -> list[DeadLetter]:
    if not storable(queue or "") or not storable(reason or ""):
        return []
    where: list[str] = ["true"]
    values: list[object] = []
    for column, value in (("id < %s", before), ("queue = %s", queue), ("reason = %s", reason)):
        if value is not None:
            where.append(column)
            values.append(value)
    sql = f"{_DEAD} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT %s"
    return [_dead(row) for row in await fetch(connection, sql, (*values, limit))]


async def dead_letter(connection: Connection, id: int) -> DeadLetter | None:
    if not 0 <= id < 2**63:
        return None
    rows = await fetch(connection, f"{_DEAD} WHERE id = %s", (id,))
    return _dead(rows[0]) if rows else None


async def dead_letter_groups(connection: Connection) -> list[tuple[str, str, int]]:
    sql = "SELECT queue, reason, count(*) FROM dead_letters GROUP BY queue, reason ORDER BY 3 DESC, 1, 2"
    return [(queue, reason, count) for queue, reason, count in await fetch(connection, sql)]


async def task_types(connection: Connection) -> dict[str, bytes]:
    rows = await fetch(connection, "SELECT tipo, body FROM task_types ORDER BY tipo")
    return {tipo: body.encode() for tipo, body in rows}


async def system_events(connection: Connection, limit: int, kind: str | None) -> list[SystemEvent]:
    sql = "SELECT id, at, kind, body FROM system_events WHERE %s::text IS NULL OR kind = %s ORDER BY id DESC LIMIT %s"
    return [_system_event(row) for row in await fetch(connection, sql, (kind, kind, limit))]


async def later_system_events(connection: Connection, after: int, limit: int) -> list[SystemEvent]:
    sql = "SELECT id, at, kind, body FROM system_events WHERE id > %s ORDER BY id LIMIT %s"
    return [_system_event(row) for row in await fetch(connection, sql, (after, limit))]


def _system_event(row: tuple[Any, ...]) -> SystemEvent:
    id, at, kind, body = row
    return SystemEvent(kind, from_micros(at), orjson.loads(body), id)


async def queues(connection: Connection) -> list[str]:
    """From one name to the next through the index, however many orchestrations used each."""
    sql = """
    WITH RECURSIVE names (destino) AS (
      (SELECT destino FROM run_destinos ORDER BY destino LIMIT 1)
      UNION ALL
      SELECT (SELECT d.destino FROM run_destinos AS d WHERE d.destino > names.destino ORDER BY d.destino LIMIT 1)
      FROM names WHERE names.destino IS NOT NULL
    )
    SELECT destino FROM names WHERE destino IS NOT NULL"""
    return [queue for (queue,) in await fetch(connection, sql)]


async def durability(connection: Connection) -> str:
    """Without synchronous_commit even a crash of the server costs what was confirmed; without fsync, a power cut."""
    sql = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')"
    ((commit, fsync, pages),) = await fetch(connection, sql)
    if commit == "off":
        return "best-effort"
    return "power-safe" if fsync == "on" and pages == "on" else "crash-safe"
