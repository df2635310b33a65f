"""Dead letters in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import orjson

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.sealed_rows import letter_of
from oraculo.adapters.stores.shared_sql import only
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.ports.dead_letters import DeadLetter

_COLUMNS = "id, queue, reason, detail, correlation_id, headers, at, length(body)"
_DEAD_LETTERS = f"SELECT {_COLUMNS}, body FROM dead_letters"
_WITHOUT_BODIES = f"SELECT {_COLUMNS}, x'' FROM dead_letters"


def dead_letters(
    connection: apsw.Connection,
    before: int | None,
    limit: int,
    queue: str | None,
    reason: str | None,
    bodies: bool,
    tenant: str | None,
    sealing: Sealing,
) -> list[DeadLetter]:
    where: list[str] = ["true"]
    values: list[object] = []
    for column, value in (
        ("id < ?", before),
        ("queue = ?", queue),
        ("reason = ?", reason),
        ("tenant = ?", tenant),
    ):
        if value is not None:
            where.append(column)
            values.append(value)
    sql = f"{_DEAD_LETTERS if bodies else _WITHOUT_BODIES} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"
    return [letter_of(row, sealing) for row in fetch(connection, sql, (*values, limit))]


def dead_letter(connection: apsw.Connection, id: int, tenant: str | None, sealing: Sealing) -> DeadLetter | None:
    rows = fetch(connection, f"{_DEAD_LETTERS} WHERE id = ?", (id,))
    found = letter_of(rows[0], sealing) if rows else None
    return found if found is not None and tenant in (None, found.tenant) else None


def dead_letter_groups(connection: apsw.Connection, tenant: str | None = None) -> list[tuple[str, str, int]]:
    of, values = only(tenant, "?", "WHERE")
    sql = f"SELECT queue, reason, count(*) FROM dead_letters{of} GROUP BY queue, reason ORDER BY 3 DESC, 1, 2"
    return [(queue, reason, count) for queue, reason, count in fetch(connection, sql, values)]


def remove_dead_letters(connection: apsw.Connection, ids: Sequence[int], outcome: str, tenant: str | None) -> int:
    with connection:
        of, values = only(tenant, "?")
        gone = connection.execute(
            f"DELETE FROM dead_letters WHERE id IN (SELECT value FROM json_each(?)){of} RETURNING queue",
            (orjson.dumps(list(ids)).decode(), *values),
        ).fetchall()
        for (queue,) in gone:
            connection.execute(
                "INSERT INTO counters VALUES (?, ?, 1) ON CONFLICT (queue, verdict) DO UPDATE SET count = count + 1",
                (queue, outcome),
            )
    return len(gone)
