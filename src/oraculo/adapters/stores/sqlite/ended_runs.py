"""Ended orchestrations in SQLite: listed in the order of their ends, and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import apsw
import orjson

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.sqlite.connections import Connections, fetch
from oraculo.adapters.stores.unique_key_rows import FORGET_ENDED, FORGET_OLD, MARK_FORGOTTEN
from oraculo.ports.ended_runs import EndedRun
from oraculo.wire.quarantine import ATTEMPTS_USED_UP

_LAST = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"


def _ended_runs(connection: apsw.Connection, after: EndedRun | None, before: datetime, limit: int) -> list[EndedRun]:
    at, run = (0, 0) if after is None else (to_micros(after.closed_at), after.run)
    rows = fetch(
        connection,
        "SELECT run, tenant, tipo, closed_at, owes = 0 AND wake_at IS NULL FROM runs"
        " WHERE closed_at IS NOT NULL AND closed_at < ?1 AND closed_at >= ?2 AND"
        " (closed_at, run) > (?2, ?3) ORDER BY closed_at, run LIMIT ?4",
        (to_micros(before), at, run, limit),
    )
    return [EndedRun(run, tenant, tipo, from_micros(at), bool(settled)) for run, tenant, tipo, at, settled in rows]


def _forget_runs(connection: apsw.Connection, runs: Sequence[int], read: int | None) -> int:
    with connection:
        rows = fetch(
            connection,
            "SELECT run FROM runs WHERE run IN (SELECT value FROM json_each(?1)) AND closed_at IS NOT NULL"
            f" AND owes = 0 AND wake_at IS NULL AND (?2 IS NULL OR ({_LAST}) <= ?2)",
            (orjson.dumps(list(runs)).decode(), read),
        )
        found: list[int] = [run for (run,) in rows]
        delete_runs(connection, found)
        chosen = orjson.dumps(found).decode()
        for table in ("idempotency_keys", "sla_alerts"):
            connection.execute(f"DELETE FROM {table} WHERE run IN (SELECT value FROM json_each(?))", (chosen,))
    return len(found)


def delete_runs(connection: apsw.Connection, runs: Sequence[int]) -> None:
    """Delete all that is kept of these runs, but for their idempotency keys and for the
    keys of requests that outlive them."""
    chosen = (orjson.dumps(list(runs)).decode(),)
    connection.execute(
        "DELETE FROM dead_letters WHERE reason = ? AND correlation_id IN"
        " (SELECT correlation_id FROM runs WHERE run IN (SELECT value FROM json_each(?)))",
        (ATTEMPTS_USED_UP, *chosen),
    )
    for change in (FORGET_ENDED, MARK_FORGOTTEN):
        connection.execute(f"{change} IN (SELECT value FROM json_each(?))", chosen)
    connection.execute(FORGET_OLD)
    for table in ("journal", "results", "run_destinos", "run_rotulos", "run_origins", "runs"):
        connection.execute(f"DELETE FROM {table} WHERE run IN (SELECT value FROM json_each(?))", chosen)


class SqliteEndedRuns:
    connections: Connections

    async def ended_runs(self, after: EndedRun | None, before: datetime, limit: int) -> list[EndedRun]:
        return await self.connections.read(lambda c: _ended_runs(c, after, before, limit))

    async def forget_runs(self, runs: Sequence[int], read: int | None = None) -> int:
        return await self.connections.write(lambda c: _forget_runs(c, runs, read))
