"""Appending a batch to PostgreSQL: one array per column, a constant number of statements whatever its size.

Rows are locked and written in the order of their numbers everywhere, so that two members never wait for each other in
a circle. The journal comes last, under the lock of its tail: positions are committed in the order in which they are
given out, so a reader of the tail misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores import sealed_rows, shared_sql, unique_key_rows
from oraculo.adapters.stores.instants import to_micros, to_micros_or_none
from oraculo.adapters.stores.postgres.arrays import Array, Blobs, Numbers, Texts
from oraculo.adapters.stores.postgres.locks import TAIL_LOCK
from oraculo.adapters.stores.postgres.pipeline import Statement
from oraculo.adapters.stores.sealed_rows import UNSEALED
from oraculo.core.events import OrchestrationStarted, TicketRequeued
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.core.tenants import tenant_of
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, LockRequest
from oraculo.wire import records

_RUN = "run, status, version, closed_at, wake_at, owes, open, failed, total"
_NEW = "correlation_id, fingerprint, tipo, created_at, deadline, owner, rotulos, tenant, limited"
_NEW_RUNS = f"""
INSERT INTO runs ({_RUN}, {_NEW}, hands, owed_at)
SELECT k.*, CASE WHEN k.owes > 0 THEN ARRAY[m.slot] ELSE '{{}}' END, CASE WHEN k.owes > 0 THEN m.now END
FROM (SELECT %s::smallint, oraculo_now()) AS m (slot, now),
  unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) AS k ({_RUN}, {_NEW})"""
_FAILURES = """
UPDATE run_destinos SET failed = k.failed FROM unnest(%s, %s, %s) AS k (destino, run, failed)
WHERE run_destinos.destino = k.destino AND run_destinos.run = k.run"""
_LABELS = "INSERT INTO run_rotulos (rotulo, run) SELECT * FROM unnest(%s, %s)"
_ORIGINS = "INSERT INTO run_origins (origin, run) SELECT * FROM unnest(%s, %s)"
_DESTINOS = "INSERT INTO run_destinos (destino, run) SELECT * FROM unnest(%s, %s)"
# The version that the step was decided on is part of the condition: a step that lost a race changes nothing.
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
_PAUSES = """
UPDATE runs SET deadline = k.deadline, paused_at = k.paused_at FROM unnest(%s, %s, %s) AS k (run, deadline, paused_at)
WHERE runs.run = k.run"""
_RESULTS = "INSERT INTO results (run, body) SELECT * FROM unnest(%s, %s)"
_KEYS = "INSERT INTO idempotency_keys (key, fingerprint, run, at) SELECT k.*, %s FROM unnest(%s, %s, %s) AS k"
_HOLDERS = f"""
INSERT INTO unique_keys ({unique_key_rows.UNIQUE_KEY_COLUMNS})
SELECT * FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (run) DO UPDATE SET {unique_key_rows.UPSERT}"""
_DEAD = """
INSERT INTO dead_letters (queue, reason, detail, correlation_id, headers, body, tenant, at)
SELECT k.*, %s FROM unnest(%s, %s, %s, %s, %s, %s, %s) AS k"""
_TAIL = f"SELECT pg_advisory_xact_lock({TAIL_LOCK[0]}, {TAIL_LOCK[1]})"
_JOURNAL = (
    f"INSERT INTO journal (run, first, at, events, format) SELECT *, {records.FORMAT} FROM unnest(%s, %s, %s, %s)"
)
_COUNTS = """
INSERT INTO counters (queue, verdict, count) SELECT * FROM unnest(%s, %s, %s)
ON CONFLICT (queue, verdict) DO UPDATE SET count = counters.count + excluded.count"""
# Whoever forgets a key waits for this transaction, and this one fails where that has been done.
_KEYS_HELD = """
WITH held AS (SELECT 1 FROM data_keys WHERE id = ANY (%s) AND wrapped IS NOT NULL FOR SHARE)
SELECT oraculo_exactly((SELECT count(*) FROM held), %s)"""
_NEWS = "SELECT pg_notify('oraculo', '')"

_KINDS: dict[str, Callable[[Sequence[Any]], Array]] = {"n": Numbers, "t": Texts, "b": Blobs}


class BatchRows:
    """The rows of a batch, copied when it is made: the states in the batch go on changing."""

    def __init__(self, batch: Batch, sealing: Sealing = UNSEALED) -> None:
        self.batch = batch
        self.key_ids = sorted(sealing.key_id(one) for one in sealed_rows.tenants_of(batch)) if sealing.on else []
        self.new: list[list[Any]] = []
        self.changed: list[list[Any]] = []
        self.destinos: list[tuple[str, int]] = []
        self.labels: list[tuple[str, int]] = []
        self.origins: list[tuple[int, int]] = []
        self.failures: list[tuple[str, int, int]] = []
        self.pauses: list[list[Any]] = []
        self._runs(batch)
        self.journal = [
            (step.state.run, step.first, to_micros(step.at), _events(step, sealing)) for step in batch.steps
        ]
        self.results = _results(batch, sealing)
        self.dead = [_dead(one, sealing) for one in batch.dead]

    def _runs(self, batch: Batch) -> None:
        latest: dict[int, tuple[Orchestration, int]] = {}
        born: set[int] = set()
        requeued: set[int] = set()
        for step in batch.steps:
            state = step.state
            if state.run not in latest:
                latest[state.run] = (state, step.first - 1)
                if isinstance(step.events[0], OrchestrationStarted):
                    born.add(state.run)
            if isinstance(step.events[0], TicketRequeued):
                requeued.add(state.run)
        for run, (state, expected) in sorted(latest.items(), key=_number):
            row = shared_sql.row_of(state)
            if run in born:
                plan = state.plan
                name, at = state.correlation_id, to_micros(state.started_at)
                deadline, owner = to_micros_or_none(state.deadline), shared_sql.owner_of(state)
                labels, limited = shared_sql.labels_of(state), shared_sql.limited_of(state)
                self.new.append(
                    [*row, name, state.fingerprint, plan.tipo, at, deadline, owner, labels, tenant_of(name), limited]
                )
                self.labels.extend(shared_sql.label_rows(state))
                if state.origin is not None:
                    self.origins.append((state.origin.run, run))
                self.destinos.extend((queue, run) for queue in sorted(plan.queues))
            else:
                self.changed.append([*row, expected])
            if state.pauses:
                self.pauses.append(shared_sql.pause_of(state))
            if row[7] or run in requeued:
                self.failures.extend((queue, run, count) for queue, count in sorted(shared_sql.failures(state).items()))

    def lock_request(self) -> LockRequest:
        """The runs, names and keys that have to be locked before these rows are written."""
        known = {row[0]: row[-1] for row in self.changed}
        return LockRequest(
            known,
            [row[9] for row in self.new],
            [key.key for key in self.batch.keys],
            sorted({one.key for one in self.batch.holders.values()}),
        )

    def statements(self, slot: int) -> list[Statement]:
        batch = self.batch
        at = to_micros(batch.at)
        found: list[Statement] = []
        if self.key_ids:
            found.append((_KEYS_HELD, (Texts(self.key_ids), len(self.key_ids))))
        if self.new:
            found.append((_NEW_RUNS, (slot, *_columns(self.new, "ntnnnnnnntttnntttn"))))
        if self.destinos:  # plans that only wait have none
            found.append((_DESTINOS, _columns(self.destinos, "tn")))
        if self.labels:
            found.append((_LABELS, _columns(self.labels, "tn")))
        if self.origins:
            found.append((_ORIGINS, _columns(self.origins, "nn")))
        if self.changed:
            found.append((_RUNS, (slot, *_columns(self.changed, "ntnnnnnnnn"), len(self.changed))))
        if self.pauses:
            found.append((_PAUSES, _columns(self.pauses, "nnn")))
        if self.failures:
            found.append((_FAILURES, _columns(self.failures, "tnn")))
        if self.results:
            found.append((_RESULTS, _columns(self.results, "nt")))
        if batch.keys:
            found.append((_KEYS, (at, *_columns([(one.key, one.fingerprint, one.run) for one in batch.keys], "ttn"))))
        if batch.holders:
            holders = [unique_key_rows.row_of(one) for _, one in sorted(batch.holders.items())]
            found.append((_HOLDERS, _columns(holders, "nttnnntn")))
        if self.dead:
            found.append((_DEAD, (at, *_columns(self.dead, "tttttbt"))))
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
    """Turn rows into one array for each column; `kinds` has a letter for each: numbers, texts or blobs."""
    return [_KINDS[kind](column) for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)]


def _events(step: Step, sealing: Sealing) -> bytes | str:
    events = records.encode(step.events)
    if not sealing.on:
        return events
    run, tenant = step.state.run, tenant_of(step.state.correlation_id)
    return sealing.seal_text(tenant, sealed_rows.step_place(run, step.first), events)


def _results(batch: Batch, sealing: Sealing) -> list[tuple[int, bytes | str]]:
    if not sealing.on or not batch.results:
        return list(batch.results.items())
    tenants = {step.state.run: tenant_of(step.state.correlation_id) for step in batch.steps}
    return [
        (run, sealing.seal_text(tenants[run], sealed_rows.result_place(run), body))
        for run, body in batch.results.items()
    ]


def _dead(one: DeadLetter, sealing: Sealing) -> tuple[Any, ...]:
    """The columns of a dead letter. Its texts come from outside, and PostgreSQL refuses NUL in a text."""
    name = None if one.correlation_id is None else _clean(one.correlation_id)
    detail, headers, body = sealed_rows.letter_texts(one, sealing)
    return _clean(one.queue), _clean(one.reason), _clean(detail), name, headers, body, one.tenant


def _clean(text: str) -> str:
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
