"""What is read from SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import apsw
import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none
from oraculo.ports.store import Asked, DeadLetter, Found, Key, Lag, Live, Recorded, SystemEvent
from oraculo.wire import records

_STEP = "SELECT run, first, at, format, events, position FROM journal"
_DEAD = "SELECT id, queue, reason, detail, correlation_id, headers, body, at FROM dead_letters"


def fetch(connection: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """All rows; SQLite's columns have no static type."""
    return connection.execute(sql, tuple(values)).fetchall()


def _list(values: Iterable[object]) -> str:
    return orjson.dumps(list(values)).decode()


def locate(connection: apsw.Connection, correlation_ids: Sequence[str]) -> dict[str, int]:
    sql = "SELECT correlation_id, run FROM runs WHERE correlation_id IN (SELECT value FROM json_each(?))"
    return dict(fetch(connection, sql, (_list(correlation_ids),)))


def _step(row: tuple[Any, ...]) -> Recorded:
    run, first, at, format, events, position = row
    return Recorded(run, first, from_micros(at), records.decode(events, format), position, events)


def load(connection: apsw.Connection, runs: Sequence[int]) -> dict[int, list[Recorded]]:
    loaded: dict[int, list[Recorded]] = {}
    sql = f"{_STEP} WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run, first"
    for row in fetch(connection, sql, (_list(runs),)):
        loaded.setdefault(row[0], []).append(_step(row))
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
    sql = f"{_STEP} WHERE run = ?1 AND first >= ifnull(({start}), 0) ORDER BY first LIMIT ?3"
    steps = [_step(row) for row in fetch(connection, sql, (run, after + 1, limit))]
    return [step for step in steps if step.first + len(step.events) > after + 1]


def tail(connection: apsw.Connection, after: int, limit: int, tipo: str | None) -> list[Recorded]:
    only = "" if tipo is None else " AND EXISTS (SELECT 1 FROM runs WHERE runs.run = journal.run AND runs.tipo = ?3)"
    sql = f"{_STEP} WHERE position > ?1{only} ORDER BY position LIMIT ?2"
    return [_step(row) for row in fetch(connection, sql, (after, limit) if tipo is None else (after, limit, tipo))]


def result(connection: apsw.Connection, run: int) -> bytes | None:
    rows = fetch(connection, "SELECT body FROM results WHERE run = ?", (run,))
    return rows[0][0].encode() if rows else None


def found(connection: apsw.Connection, asked: Asked) -> Found:
    runs = locate(connection, asked.names) if asked.names else {}
    used = keyed(connection, asked.keys) if asked.keys else {}
    strange = {run for run, version in asked.known.items() if not version}
    strange.update(runs.values(), (key.run for key in used.values() if not asked.known.get(key.run)))
    news = load(connection, sorted(strange)) if strange else {}
    return Found(None, runs, used, news, [run for run in strange if run not in news])


def keyed(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Key]:
    sql = "SELECT key, fingerprint, run FROM idempotency_keys WHERE key IN (SELECT value FROM json_each(?))"
    return {row[0]: Key(*row) for row in fetch(connection, sql, (_list(keys),))}


def count_by_status(connection: apsw.Connection) -> dict[str, int]:
    return dict(fetch(connection, "SELECT status, count(*) FROM runs GROUP BY status"))


def counts(connection: apsw.Connection) -> dict[tuple[str, str], int]:
    return {
        (queue, verdict): n for queue, verdict, n in fetch(connection, "SELECT queue, verdict, count FROM counters")
    }


def _dead(row: tuple[Any, ...]) -> DeadLetter:
    id, queue, reason, detail, correlation_id, headers, body, at = row
    return DeadLetter(queue, reason, detail, body, correlation_id, orjson.loads(headers), id, from_micros(at))


def dead_letters(
    connection: apsw.Connection, before: int | None, limit: int, queue: str | None, reason: str | None
) -> list[DeadLetter]:
    where: list[str] = ["true"]
    values: list[object] = []
    for column, value in (("id < ?", before), ("queue = ?", queue), ("reason = ?", reason)):
        if value is not None:
            where.append(column)
            values.append(value)
    sql = f"{_DEAD} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"
    return [_dead(row) for row in fetch(connection, sql, (*values, limit))]


def dead_letter(connection: apsw.Connection, id: int) -> DeadLetter | None:
    rows = fetch(connection, f"{_DEAD} WHERE id = ?", (id,))
    return _dead(rows[0]) if rows else None


def dead_letter_groups(connection: apsw.Connection) -> list[tuple[str, str, int]]:
    sql = "SELECT queue, reason, count(*) FROM dead_letters GROUP BY queue, reason ORDER BY 3 DESC, 1, 2"
    return [(queue, reason, count) for queue, reason, count in fetch(connection, sql)]


def task_types(connection: apsw.Connection) -> dict[str, bytes]:
    rows = fetch(connection, "SELECT tipo, body FROM task_types ORDER BY tipo")
    return {tipo: body.encode() for tipo, body in rows}


def system_events(connection: apsw.Connection, limit: int, kind: str | None) -> list[SystemEvent]:
    sql = "SELECT id, at, kind, body FROM system_events WHERE ?1 IS NULL OR kind = ?1 ORDER BY id DESC LIMIT ?2"
    return [_system_event(row) for row in fetch(connection, sql, (kind, limit))]


def later_system_events(connection: apsw.Connection, after: int, limit: int) -> list[SystemEvent]:
    sql = "SELECT id, at, kind, body FROM system_events WHERE id > ? ORDER BY id LIMIT ?"
    return [_system_event(row) for row in fetch(connection, sql, (after, limit))]


def _system_event(row: tuple[Any, ...]) -> SystemEvent:
    id, at, kind, body = row
    return SystemEvent(kind, from_micros(at), orjson.loads(body), id)


def cursors(connection: apsw.Connection) -> dict[str, int]:
    return dict(fetch(connection, "SELECT name, position FROM cursors ORDER BY name"))


def lag(connection: apsw.Connection, after: int) -> Lag:
    first = "SELECT at FROM journal WHERE position > ? ORDER BY position LIMIT 1"
    sql = f"SELECT (SELECT max(position) FROM journal), ({first})"
    ((last, at),) = fetch(connection, sql, (after,))
    return Lag(max(0, (last or 0) - after), from_micros_or_none(at))


def queues(connection: apsw.Connection) -> list[str]:
    """From one name to the next through the index, however many orchestrations used each."""
    sql = """
    WITH RECURSIVE names (destino) AS (
      SELECT min(destino) FROM run_destinos
      UNION ALL
      SELECT (SELECT min(d.destino) FROM run_destinos AS d WHERE d.destino > names.destino)
      FROM names WHERE names.destino IS NOT NULL
    )
    SELECT destino FROM names WHERE destino IS NOT NULL"""
    return [queue for (queue,) in fetch(connection, sql)]
