"""A whole store as tables, to be copied into another kind of database: one side is read, the other is filled.

Both sides are held for as long as it takes, so that no engine can run on either. Nothing is in the target before all of
it is, counted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import apsw

from oraculo.adapters.stores.breaker_rows import BREAKER_COLUMNS
from oraculo.adapters.stores.key_rows import KEY_COLUMNS, SESSION_COLUMNS
from oraculo.adapters.stores.schedule_rows import SCHEDULE_COLUMNS
from oraculo.adapters.stores.sealed_rows import DATA_KEY_COLUMNS
from oraculo.adapters.stores.sla_rows import SLO_COLUMNS
from oraculo.adapters.stores.sqlite.locks import lock, make_private
from oraculo.adapters.stores.sqlite.schema import migrate
from oraculo.adapters.stores.tenant_rows import TENANT_COLUMNS
from oraculo.adapters.stores.token_key_rows import TOKEN_KEY_COLUMNS
from oraculo.adapters.stores.unique_key_rows import UNIQUE_KEY_COLUMNS
from oraculo.adapters.stores.user_rows import USER_COLUMNS
from oraculo.adapters.stores.worker_rows import WORKER_COLUMNS
from oraculo.errors import StoreError, StoreUnavailableError

Row = Sequence[Any]

COPY_CHUNK_ROWS = 1000
TABLES = {
    "runs": "run, correlation_id, fingerprint, tipo, status, version, created_at, closed_at, wake_at, owes, total,"
    " open, failed, deadline, owner, rotulos, paused_at, tenant, limited",
    "run_destinos": "destino, run, failed",
    "run_rotulos": "rotulo, run",
    "run_origins": "origin, run",
    "journal": "position, run, first, at, format, events",
    "results": "run, body",
    "idempotency_keys": "key, fingerprint, run, at",
    "unique_keys": UNIQUE_KEY_COLUMNS,
    "dead_letters": "id, queue, reason, detail, correlation_id, headers, body, at, tenant",
    "task_types": "tipo, body, at, tenant",
    "parameter_schemas": "queue, body, at",
    "schedules": SCHEDULE_COLUMNS,
    "api_keys": KEY_COLUMNS,
    "sessions": SESSION_COLUMNS,
    "token_keys": TOKEN_KEY_COLUMNS,
    "tenants": TENANT_COLUMNS,
    "data_keys": DATA_KEY_COLUMNS,
    "users": USER_COLUMNS,
    "counters": "queue, verdict, count",
    "system_events": "id, at, kind, body, tenant",
    "destination_pauses": "alvo, ator, motivo, desde",
    "breakers": BREAKER_COLUMNS,
    "workers": f"{WORKER_COLUMNS}, tenant, lease, lost_at",
    "cursors": "name, position",
    "slos": SLO_COLUMNS,
    "sla_alerts": "seq, id, tenant, run, tipo, at, corpo",
    "projected": "projecao, chave, corpo, versao",
    "projected_marks": "projecao, versao, posicao",
}
# Numbers that are never used again.
SEQUENCES = {"journal": "position", "dead_letters": "id", "system_events": "id", "sla_alerts": "seq"}


class Side(Protocol):
    shown: str

    def count(self, table: str) -> int: ...

    def rows(self, table: str) -> Iterator[Row]:
        """In the order of the first column."""
        ...

    def put(self, table: str, rows: Sequence[Row]) -> None: ...

    def last_number(self, table: str) -> int:
        """The highest that was ever given out."""
        ...

    def set_last_number(self, table: str, number: int) -> None: ...

    def finish(self) -> None:
        """All of it is there."""
        ...

    def close(self) -> None: ...


def refuse_unless_empty(side: Side) -> None:
    full = [table for table in TABLES if side.count(table)]
    if full:
        raise StoreError(f"{side.shown} is not empty ({', '.join(full)}): name a database that nothing was stored in")


class SqliteSide:
    def __init__(self, path: str, *, target: bool) -> None:
        self.shown = path
        self._lock = lock(f"{path}.lock")
        try:
            if target:
                make_private(path)
            self._connection = apsw.Connection(path)
            self._connection.execute("PRAGMA journal_mode=WAL").fetchall()
            self._connection.execute("PRAGMA synchronous=FULL").fetchall()
            migrate(self._connection)
            self._connection.execute("BEGIN IMMEDIATE" if target else "BEGIN")
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, apsw.Error):
                raise StoreUnavailableError(f"cannot open the database {path!r}: {error}") from error
            raise

    def count(self, table: str) -> int:
        return int(self._value(f"SELECT count(*) FROM {table}"))

    def rows(self, table: str) -> Iterator[Row]:
        yield from self._connection.execute(f"SELECT {TABLES[table]} FROM {table} ORDER BY 1")

    def put(self, table: str, rows: Sequence[Row]) -> None:
        marks = ", ".join("?" * len(rows[0]))
        self._connection.executemany(f"INSERT INTO {table} ({TABLES[table]}) VALUES ({marks})", rows)

    def last_number(self, table: str) -> int:
        return int(self._value("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", table) or 0)

    def set_last_number(self, table: str, number: int) -> None:
        self._connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        self._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, number))

    def finish(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
        os.close(self._lock)

    def _value(self, sql: str, *values: object) -> Any:
        return self._connection.execute(sql, values).fetchall()[0][0]


class PostgresSide:
    """What is owed in a store that is copied is given to a member that is dead already: the first
    process that joins takes over from it."""

    def __init__(self, url: str, *, target: bool) -> None:
        import psycopg

        from oraculo.adapters.stores.postgres import row_security
        from oraculo.adapters.stores.postgres.store import PostgresStore

        store = PostgresStore(url)
        self.shown = store.shown
        asyncio.run(_made(store, create=target))
        self._connection = psycopg.connect(url, application_name="oraculo migrate-store")
        try:
            self._connection.execute(row_security.SESSION_OF_FLEET.encode())
            self._connection.commit()
            if not target:
                self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._connection.execute("LOCK TABLE members IN EXCLUSIVE MODE NOWAIT")
            alive = self._column("SELECT name FROM members WHERE lease_until > oraculo_now() ORDER BY slot")
        except psycopg.Error as error:
            self._connection.close()
            raise StoreUnavailableError(f"somebody works on {self.shown}: {error.diag.message_primary}") from error
        if alive:
            self._connection.close()
            raise StoreError(f"Oráculo is running on {self.shown} ({', '.join(alive)}): stop it first")
        self._bound = self._column(row_security.BOUND_TABLES) if target else []
        for table in self._bound:  # PostgreSQL copies into no table whose policies bind the user
            self._connection.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY".encode())

    def count(self, table: str) -> int:
        return int(self._column(f"SELECT count(*) FROM {table}")[0])

    def rows(self, table: str) -> Iterator[Row]:
        with self._connection.cursor(name="moving") as cursor:
            cursor.itersize = COPY_CHUNK_ROWS
            cursor.execute(f"SELECT {TABLES[table]} FROM {table} ORDER BY 1".encode())
            yield from cursor

    def put(self, table: str, rows: Sequence[Row]) -> None:
        columns = TABLES[table]
        if table == "runs":
            owes = columns.split(", ").index("owes")
            columns += ", hands"
            rows = [(*row, [1] if row[owes] else []) for row in rows]
        elif table == "dead_letters":
            rows = [[_clean(value) for value in row] for row in rows]
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def last_number(self, table: str) -> int:
        return int(
            self._column(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {self._sequence(table)}")[0]
        )

    def set_last_number(self, table: str, number: int) -> None:
        if number:
            self._connection.execute("SELECT setval(%s, %s)", (self._sequence(table), number))

    def finish(self) -> None:
        for table in self._bound:
            self._connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY".encode())
        self._connection.execute("DELETE FROM members")
        self._connection.execute("UPDATE runs SET owed_at = oraculo_now() WHERE owes > 0")
        if self._column("SELECT 1 FROM runs WHERE owes > 0 LIMIT 1"):
            self._connection.execute(
                "INSERT INTO members (slot, epoch, name, joined_at, lease_until)"
                " SELECT 1, nextval('epochs'), 'migrate-store', now, now FROM oraculo_now() AS now"
            )
        self._connection.commit()
        self._connection.autocommit = True
        self._connection.execute("ANALYZE")

    def close(self) -> None:
        self._connection.close()

    def _column(self, sql: str) -> list[Any]:
        return [row[0] for row in self._connection.execute(sql.encode()).fetchall()]

    @staticmethod
    def _sequence(table: str) -> str:
        return f"{table}_{SEQUENCES[table]}_seq"


async def _made(store: Any, *, create: bool) -> None:
    try:
        await store.open(create=create)
        if not create:
            await store.open()
    finally:
        await store.close()


def _clean(value: Any) -> Any:
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
