"""Dead letters in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.postgres.arrays import Numbers, Texts, storable
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.postgres.row_security import read_as_fleet
from oraculo.adapters.stores.sealed_rows import letter_of
from oraculo.adapters.stores.shared_sql import only
from oraculo.ports.dead_letters import DeadLetter

_COLUMNS = "id, queue, reason, detail, correlation_id, headers, at, octet_length(body)"
_DEAD_LETTERS = f"SELECT {_COLUMNS}, body FROM dead_letters"
_WITHOUT_BODIES = f"SELECT {_COLUMNS}, ''::bytea FROM dead_letters"


async def dead_letters(
    connection: Connection,
    before: int | None,
    limit: int,
    queue: str | None,
    reason: str | None,
    bodies: bool,
    tenant: str | None,
    sealing: Sealing,
) -> list[DeadLetter]:
    if not storable(queue or "") or not storable(reason or ""):
        return []
    where: list[str] = ["true"]
    values: list[object] = []
    for column, value in (
        ("id < %s", before),
        ("queue = %s", queue),
        ("reason = %s", reason),
        ("tenant = %s", tenant),
    ):
        if value is not None:
            where.append(column)
            values.append(value)
    sql = f"{_DEAD_LETTERS if bodies else _WITHOUT_BODIES} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT %s"
    return [letter_of(row, sealing) for row in await fetch(connection, sql, (*values, limit))]


async def dead_letter(connection: Connection, id: int, tenant: str | None, sealing: Sealing) -> DeadLetter | None:
    if not 0 <= id < 2**63:
        return None
    rows = await fetch(connection, f"{_DEAD_LETTERS} WHERE id = %s", (id,))
    found = letter_of(rows[0], sealing) if rows else None
    return found if found is not None and tenant in (None, found.tenant) else None


async def dead_letter_groups(connection: Connection, tenant: str | None = None) -> list[tuple[str, str, int]]:
    of, values = only(tenant, "%s", "WHERE")
    sql = f"SELECT queue, reason, count(*) FROM dead_letters{of} GROUP BY queue, reason ORDER BY 3 DESC, 1, 2"
    return [(queue, reason, count) for queue, reason, count in await fetch(connection, sql, values)]


async def remove_dead_letters(connection: Connection, ids: Sequence[int], outcome: str, tenant: str | None) -> int:
    of, values = only(tenant, "%s")
    sql = f"""
    WITH gone AS (DELETE FROM dead_letters WHERE id = ANY (%s){of} RETURNING queue)
    SELECT queue, count(*) FROM gone GROUP BY queue ORDER BY queue"""
    gone = await fetch(connection, sql, (Numbers(ids), *values))
    if gone:
        await read_as_fleet(connection)  # counters are of all tenants
        await connection.execute(
            "INSERT INTO counters (queue, verdict, count) SELECT k.queue, %s, k.count FROM unnest(%s, %s)"
            " AS k (queue, count) ON CONFLICT (queue, verdict) DO UPDATE SET count = counters.count + excluded.count",
            (outcome, Texts(queue for queue, _ in gone), Numbers(count for _, count in gone)),
        )
    return sum(count for _, count in gone)
