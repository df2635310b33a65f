"""Appending a batch to SQLite: one statement per table.

The rows of a table travel as one JSON text that `json_each` takes apart, one row alone as parameters. Documents are
never part of that JSON, where SQLite would read and write them several times: those of a table are one value, and the
rows say where in it theirs is.

`statements` runs in the event loop and copies the states as they are after their steps; `apply` runs in the writer
thread and touches nothing but the copies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import apsw
import orjson

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores import sealed_rows, shared_sql, unique_key_rows
from oraculo.adapters.stores.instants import to_micros, to_micros_or_none
from oraculo.adapters.stores.sqlite.connections import fetch, json_list
from oraculo.core.events import OrchestrationStarted, TicketRequeued
from oraculo.core.state import Orchestration
from oraculo.core.tenants import tenant_of
from oraculo.errors import StoreUnavailableError
from oraculo.ports.journal import Batch
from oraculo.wire import records

_ROW_BY_ROW = re.compile(r"substr\(\?2, value->>(\d+), value->>\d+\)|(?:\bj\.)?\bvalue->>(\d+)")
_ALL_ROWS = re.compile(r"\s*\bFROM json_each\(\?1\)(?: AS j)?")

Statement = tuple[str, tuple[object, ...], int | None]  # SQL, its parameters, how many rows it must change


class Change:
    """One statement for the rows of a table: `sql` takes all of them as JSON, and the documents of all as the second
    parameter. Its form for a single row takes the columns of that row. `exact`: it must change as many as it is given.
    """

    def __init__(self, sql: str, *, exact: bool = False) -> None:
        self._many = sql
        self._one = _ROW_BY_ROW.sub(lambda found: f"?{int(found[1] or found[2]) + 1}", _ALL_ROWS.sub("", sql))
        self._exact = exact

    def of(self, rows: Sequence[Sequence[object]]) -> Statement:
        count = len(rows) if self._exact else None
        if len(rows) == 1:
            return self._one, tuple(rows[0]), count
        return self._many, (orjson.dumps(rows).decode(),), count

    def with_documents(self, rows: Sequence[Sequence[object]], documents: Sequence[bytes]) -> Statement:
        """As `of`; the document of each row comes after its other columns."""
        if len(rows) == 1:
            return self._one, (*rows[0], documents[0]), 1
        start, places = 1, []
        for row, document in zip(rows, documents, strict=True):
            places.append([*row, start, len(document)])
            start += len(document)
        return self._many, (orjson.dumps(places).decode(), b"".join(documents)), len(rows)


_JOURNAL = Change(f"""
INSERT INTO journal (run, first, at, events, format)
SELECT value->>0, value->>1, value->>2, CAST(substr(?2, value->>3, value->>4) AS TEXT), {records.FORMAT}
FROM json_each(?1)""")
_NEW_RUNS = Change(
    """
INSERT INTO runs (run, status, version, closed_at, wake_at, owes, open, failed, total,
                  correlation_id, fingerprint, tipo, created_at, deadline, owner, rotulos, tenant, limited)
SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8,
       value->>10, value->>11, value->>12, value->>13, value->>14, value->>15, value->>16,
       value->>17, value->>18 FROM json_each(?1)""",
    exact=True,
)
_DESTINOS = Change("INSERT OR IGNORE INTO run_destinos (destino, run) SELECT value->>0, value->>1 FROM json_each(?1)")
_LABELS = Change("INSERT INTO run_rotulos (rotulo, run) SELECT value->>0, value->>1 FROM json_each(?1)")
_ORIGINS = Change("INSERT INTO run_origins (origin, run) SELECT value->>0, value->>1 FROM json_each(?1)")
_FAILURES = Change("""
UPDATE run_destinos SET failed = j.value->>2
FROM json_each(?1) AS j WHERE destino = j.value->>0 AND run_destinos.run = j.value->>1""")
# The version that the step was decided on is part of the condition: a step that lost a race changes nothing.
_RUNS = Change(
    """
UPDATE runs SET status = j.value->>1, version = j.value->>2, closed_at = j.value->>3, wake_at = j.value->>4,
                owes = j.value->>5, open = j.value->>6, failed = j.value->>7, total = j.value->>8
FROM json_each(?1) AS j WHERE runs.run = j.value->>0 AND runs.version = j.value->>9""",
    exact=True,
)
_PAUSES = Change("""
UPDATE runs SET deadline = j.value->>1, paused_at = j.value->>2
FROM json_each(?1) AS j WHERE runs.run = j.value->>0""")
_RESULTS = Change("""
INSERT INTO results (run, body)
SELECT value->>0, CAST(substr(?2, value->>1, value->>2) AS TEXT) FROM json_each(?1)""")
_KEYS = Change(
    """
INSERT INTO idempotency_keys (key, fingerprint, run, at)
SELECT value->>0, value->>1, value->>2, value->>3 FROM json_each(?1)""",
    exact=True,
)
_HOLDERS = Change(
    f"""
INSERT INTO unique_keys ({unique_key_rows.UNIQUE_KEY_COLUMNS})
SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7
FROM json_each(?1) WHERE true
ON CONFLICT (run) DO UPDATE SET {unique_key_rows.UPSERT}""",
    exact=True,
)
_COUNTS = Change("""
INSERT INTO counters (queue, verdict, count) SELECT value->>0, value->>1, value->>2 FROM json_each(?1) WHERE true
ON CONFLICT (queue, verdict) DO UPDATE SET count = count + excluded.count""")
_DEAD = """
INSERT INTO dead_letters (queue, reason, detail, correlation_id, headers, body, at, tenant)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""

_KEYS_HELD = "SELECT count(*) FROM data_keys WHERE id IN (SELECT value FROM json_each(?)) AND wrapped IS NOT NULL"


class Statements:
    __slots__ = ("dead", "keys", "rows")

    def __init__(self, rows: list[Statement], dead: list[tuple[object, ...]], keys: Sequence[str]) -> None:
        self.rows = rows
        self.dead = dead
        self.keys = keys  # that the rows are sealed with


def statements(batch: Batch, sealing: Sealing) -> Statements:
    journal: list[tuple[int, int, int]] = []
    events: list[bytes] = []
    new: list[list[object]] = []
    changed: list[list[object]] = []
    destinos: list[list[object]] = []
    labels: list[tuple[str, int]] = []
    origins: list[list[object]] = []
    failures: list[list[object]] = []
    pauses: list[list[object]] = []
    latest: dict[int, tuple[Orchestration, int]] = {}
    born: set[int] = set()
    requeued: set[int] = set()
    for step in batch.steps:
        state = step.state
        text = records.encode(step.events)
        if sealing.on:
            place = sealed_rows.step_place(state.run, step.first)
            text = sealing.seal_text(tenant_of(state.correlation_id), place, text).encode()
        journal.append((state.run, step.first, to_micros(step.at)))
        events.append(text)
        if state.run not in latest:
            latest[state.run] = (state, step.first - 1)
            if isinstance(step.events[0], OrchestrationStarted):
                born.add(state.run)
        if isinstance(step.events[0], TicketRequeued):
            requeued.add(state.run)
    for run, (state, expected) in latest.items():
        row = [*shared_sql.row_of(state), expected]
        if run in born:
            plan = state.plan
            row += [state.correlation_id, state.fingerprint, plan.tipo, to_micros(state.started_at)]
            row += [to_micros_or_none(state.deadline), shared_sql.owner_of(state), shared_sql.labels_of(state)]
            row += [tenant_of(state.correlation_id), shared_sql.limited_of(state)]
            new.append(row)
            destinos.extend([queue, run] for queue in plan.queues)
            labels.extend(shared_sql.label_rows(state))
            if state.origin is not None:
                origins.append([state.origin.run, run])
        else:
            changed.append(row)
        if state.pauses:
            pauses.append(shared_sql.pause_of(state))
        if row[7] or run in requeued:
            failures.extend([queue, run, count] for queue, count in shared_sql.failures(state).items())
    at = to_micros(batch.at)
    tables: list[tuple[Change, Sequence[Sequence[object]]]] = [
        (_NEW_RUNS, new),
        (_DESTINOS, destinos),
        (_LABELS, labels),
        (_ORIGINS, origins),
        (_FAILURES, failures),
        (_RUNS, changed),
        (_PAUSES, pauses),
        (_KEYS, [(key.key, key.fingerprint, key.run, at) for key in batch.keys]),
        (_HOLDERS, [unique_key_rows.row_of(one) for one in batch.holders.values()]),
        (_COUNTS, [(queue, verdict, count) for (queue, verdict), count in batch.counts.items()]),
    ]
    rows = [change.of(table) for change, table in tables if table]
    if journal:
        rows.append(_JOURNAL.with_documents(journal, events))
    if batch.results:
        results = sealed_results(batch, latest, sealing)
        rows.append(_RESULTS.with_documents([(run,) for run in batch.results], results))
    dead: list[tuple[object, ...]] = [
        (d.queue, d.reason, detail, d.correlation_id, headers, body, at, d.tenant)
        for d in batch.dead
        for detail, headers, body in (sealed_rows.letter_texts(d, sealing),)
    ]
    used = [sealing.key_id(tenant) for tenant in sealed_rows.tenants_of(batch)] if sealing.on else ()
    return Statements(rows, dead, used)


def sealed_results(batch: Batch, states: Mapping[int, tuple[Orchestration, int]], sealing: Sealing) -> Sequence[bytes]:
    if not sealing.on:
        return list(batch.results.values())
    return [
        sealing.seal_text(tenant_of(states[run][0].correlation_id), sealed_rows.result_place(run), body).encode()
        for run, body in batch.results.items()
    ]


def apply(connection: apsw.Connection, what: Statements) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if what.keys and fetch(connection, _KEYS_HELD, (json_list(what.keys),))[0][0] != len(what.keys):
            raise StoreUnavailableError("the key of a tenant was forgotten meanwhile")
        for sql, parameters, expected in what.rows:
            connection.execute(sql, parameters)
            if expected is not None and connection.changes() != expected:
                raise StoreUnavailableError(
                    f"{connection.changes()} of {expected} rows were written: another process changed an orchestration"
                )
        for row in what.dead:
            connection.execute(_DEAD, row)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
