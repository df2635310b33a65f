"""What is written to PostgreSQL, and how: one array per column, a constant number of statements per batch.

Rows are locked and written in the order of their numbers everywhere, so that two members never wait for each other in
a circle. The journal comes last, under the lock of its tail: positions are committed in the order in which they are
given out, and whoever follows the tail misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import orjson

from oraculo.adapters.stores import catalogue
from oraculo.adapters.stores.instants import to_micros
from oraculo.adapters.stores.postgres.arrays import Array, Blobs, Numbers, Texts
from oraculo.adapters.stores.postgres.connections import Connection
from oraculo.adapters.stores.postgres.locks import SYSTEM, TAIL
from oraculo.adapters.stores.postgres.pipeline import Statement
from oraculo.core.events import OrchestrationStarted
from oraculo.core.state import Orchestration
from oraculo.ports.store import Asked, Batch, DeadLetter, SystemEvent
from oraculo.wire import records

_RUN = "run, status, version, closed_at, wake_at, owes, open, failed, total"
_NEW_RUNS = f"""
INSERT INTO runs ({_RUN}, correlation_id, fingerprint, tipo, created_at, deadline, hands, owed_at)
SELECT k.*, CASE WHEN k.owes > 0 THEN ARRAY[m.slot] ELSE '{{}}' END, CASE WHEN k.owes > 0 THEN m.now END
FROM (SELECT %s::smallint, oraculo_now()) AS m (slot, now),
  unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
  AS k ({_RUN}, correlation_id, fingerprint, tipo, created_at, deadline)"""
_FAILURES = """
UPDATE run_destinos SET failed = k.failed FROM unnest(%s, %s, %s) AS k (destino, run, failed)
WHERE run_destinos.destino = k.destino AND run_destinos.run = k.run"""
_DESTINOS = "INSERT INTO run_destinos (destino, run) SELECT * FROM unnest(%s, %s)"
# The version that the step was decided on is part of the condition: whoever lost a race changes nothing.
_RUNS = f"""
WITH written AS (
  UPDATE runs SET status = k.status, version = k.version, closed_at = k.closed_at, wake_at = k.wake_at,
    owes = k.owes, open = k.open, failed = k.failed, total = k.total,
    hands = CASE WHEN k.owes = 0 THEN '{{}}' WHEN runs.owes = 0 THEN ARRAY[m.slot]
                 WHEN m.slot = ANY (runs.hands) THEN runs.hands ELSE runs.hands || m.slot END,
    owed_at = CASE WHEN k.owes = 0 THEN NULL WHEN runs.owes = 0 THEN m.now ELSE runs.owed_at END
  FROM (SELECT %s::smallint, oraculo_now()) AS m (slot, now),
    unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) AS k ({_RUN}, expected)
  WHERE runs.run = k.run AND runs.version = k.expected
  RETURNING 1)
SELECT oraculo_exactly((SELECT count(*) FROM written), %s)"""
_RESULTS = "INSERT INTO results (run, body) SELECT * FROM unnest(%s, %s)"
_KEYS = "INSERT INTO idempotency_keys (key, fingerprint, run, at) SELECT k.*, %s FROM unnest(%s, %s, %s) AS k"
_DEAD = """
INSERT INTO dead_letters (queue, reason, detail, correlation_id, headers, body, at)
SELECT k.*, %s FROM unnest(%s, %s, %s, %s, %s, %s) AS k"""
_TAIL = f"SELECT pg_advisory_xact_lock({TAIL[0]}, {TAIL[1]})"
_JOURNAL = "INSERT INTO journal (run, first, at, events) SELECT * FROM unnest(%s, %s, %s, %s)"
_COUNTS = """
INSERT INTO counters (queue, verdict, count) SELECT * FROM unnest(%s, %s, %s)
ON CONFLICT (queue, verdict) DO UPDATE SET count = counters.count + excluded.count"""
_NEWS = "SELECT pg_notify('oraculo', '')"

_KINDS: dict[str, Callable[[Sequence[Any]], Array]] = {"n": Numbers, "t": Texts, "b": Blobs}


class Written:
    """A picture of a batch, made at once: the states in it go on changing."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.new: list[list[Any]] = []
        self.changed: list[list[Any]] = []
        self.destinos: list[tuple[str, int]] = []
        self.failures: list[tuple[str, int, int]] = []
        self._runs(batch)
        self.journal = [
            (step.state.run, step.first, to_micros(step.at), records.encode(step.events)) for step in batch.steps
        ]

    def _runs(self, batch: Batch) -> None:
        latest: dict[int, tuple[Orchestration, int]] = {}
        born: set[int] = set()
        for step in batch.steps:
            state = step.state
            if state.run not in latest:
                latest[state.run] = (state, step.first - 1)
                if isinstance(step.events[0], OrchestrationStarted):
                    born.add(state.run)
        for run, (state, expected) in sorted(latest.items(), key=_number):
            row = catalogue.row_of(state)
            if run in born:
                plan = state.plan
                name, at = state.correlation_id, to_micros(state.started_at)
                self.new.append([*row, name, state.fingerprint, plan.tipo, at, to_micros(state.deadline)])
                self.destinos.extend((queue, run) for queue in sorted({task.queue for task in plan.tasks}))
            else:
                self.changed.append([*row, expected])
            if row[7]:
                self.failures.extend((queue, run, count) for queue, count in sorted(catalogue.failures(state).items()))

    def asked(self) -> Asked:
        """What has to be locked for it."""
        known = {row[0]: row[-1] for row in self.changed}
        return Asked(known, [row[9] for row in self.new], [key.key for key in self.batch.keys])

    def statements(self, slot: int) -> list[Statement]:
        batch = self.batch
        at = to_micros(batch.at)
        found: list[Statement] = []
        if self.new:
            found.append((_NEW_RUNS, (slot, *_columns(self.new, "ntnnnnnnntttnn"))))
            found.append((_DESTINOS, _columns(self.destinos, "tn")))
        if self.changed:
            found.append((_RUNS, (slot, *_columns(self.changed, "ntnnnnnnnn"), len(self.changed))))
        if self.failures:
            found.append((_FAILURES, _columns(self.failures, "tnn")))
        if batch.results:
            found.append((_RESULTS, _columns(list(batch.results.items()), "nt")))
        if batch.keys:
            found.append((_KEYS, (at, *_columns([(one.key, one.fingerprint, one.run) for one in batch.keys], "ttn"))))
        if batch.dead:
            found.append((_DEAD, (at, *_columns([_dead(one) for one in batch.dead], "tttttb"))))
        found.append((_TAIL, ()))
        if self.journal:
            found.append((_JOURNAL, _columns(self.journal, "nnnt")))
        if batch.counts:
            counts = sorted((queue, str(verdict), count) for (queue, verdict), count in batch.counts.items())
            found.append((_COUNTS, _columns(counts, "ttn")))
        found.append((_NEWS, ()))
        return found


def _number(item: tuple[int, object]) -> int:
    return item[0]


def _columns(rows: Sequence[Sequence[Any]], kinds: str) -> list[Array]:
    """One array for each letter: numbers, texts or blobs."""
    return [_KINDS[kind](column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]


def _dead(one: DeadLetter) -> tuple[Any, ...]:
    """Their texts are whatever somebody sent."""
    name = None if one.correlation_id is None else _clean(one.correlation_id)
    headers = orjson.dumps(one.headers)
    return _clean(one.queue), _clean(one.reason), _clean(one.detail), name, headers, one.body


def _clean(text: str) -> str:
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


# -- besides the journal -----------------------------------------------------------------------------------------------


async def remove_dead_letters(connection: Connection, ids: Sequence[int], outcome: str) -> int:
    sql = """
    WITH gone AS (DELETE FROM dead_letters WHERE id = ANY (%s) RETURNING queue),
    counted AS (
      INSERT INTO counters (queue, verdict, count) SELECT queue, %s, count(*) FROM gone GROUP BY queue ORDER BY queue
      ON CONFLICT (queue, verdict) DO UPDATE SET count = counters.count + excluded.count)
    SELECT count(*) FROM gone"""
    row = await (await connection.execute(sql, (Numbers(ids), outcome))).fetchone()
    return int(row[0]) if row else 0


async def record_system_event(connection: Connection, event: SystemEvent) -> None:
    """Under a lock: they are committed in the order of their numbers, and whoever follows them misses none."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", SYSTEM)
    await connection.execute(
        "INSERT INTO system_events (at, kind, body) VALUES (%s, %s, %s)",
        (to_micros(event.at), event.kind, orjson.dumps(event.body).decode()),
    )


async def put_task_type(connection: Connection, tipo: str, body: bytes, at: datetime) -> None:
    await connection.execute(
        "INSERT INTO task_types VALUES (%s, %s, %s)"
        " ON CONFLICT (tipo) DO UPDATE SET body = excluded.body, at = excluded.at",
        (tipo, body.decode(), to_micros(at)),
    )


async def remove_task_type(connection: Connection, tipo: str) -> bool:
    return (await connection.execute("DELETE FROM task_types WHERE tipo = %s", (tipo,))).rowcount == 1


async def prune(connection: Connection, before: datetime, limit: int, read: int | None) -> int:
    """What somebody else is looking at is left for another time."""
    last = "SELECT position FROM journal WHERE journal.run = runs.run ORDER BY first DESC LIMIT 1"
    cursor = await connection.execute(
        "SELECT run FROM runs WHERE closed_at < %s AND owes = 0 AND wake_at IS NULL"
        f" AND (%s::bigint IS NULL OR ({last}) <= %s) ORDER BY closed_at LIMIT %s FOR UPDATE SKIP LOCKED".encode(),
        (to_micros(before), read, read, limit),
    )
    runs = [row[0] for row in await cursor.fetchall()]
    if runs:
        for table in ("journal", "results", "run_destinos", "idempotency_keys", "runs"):
            await connection.execute(f"DELETE FROM {table} WHERE run = ANY (%s)".encode(), (Numbers(runs),))
    return len(runs)
