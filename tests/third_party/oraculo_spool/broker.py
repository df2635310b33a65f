"""The verbs of the port over one table. Statements are short and run on the event loop, so that none is cut in two."""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import time
from collections.abc import Sequence

from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import (
    ALL_CONFIRMED,
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Refusal,
    Settle,
    Settlement,
)
from oraculo_spool.url import parse

MESSAGE_MAX_BYTES = 16 * 1024 * 1024
POLL_INTERVAL_S = 0.02

TABLE = """
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY, queue TEXT NOT NULL, body BLOB NOT NULL, headers TEXT NOT NULL, published_at REAL NOT NULL,
  ready_at REAL NOT NULL, consumer TEXT, deliveries INTEGER NOT NULL DEFAULT 0)
"""
INDEX = "CREATE INDEX IF NOT EXISTS ready ON messages (queue, ready_at, id)"
INSERT = "INSERT INTO messages (queue, body, headers, published_at, ready_at) VALUES (?, ?, ?, ?, ?)"
TAKE = """
UPDATE messages SET ready_at = :until, consumer = :consumer, deliveries = deliveries + 1
WHERE id IN (SELECT id FROM messages WHERE queue = :queue AND ready_at <= :now ORDER BY id LIMIT :limit)
RETURNING id, body, headers, deliveries
"""
MINE = "consumer = ? AND id = ?"
ACK = f"DELETE FROM messages WHERE {MINE}"
RETRY = f"UPDATE messages SET ready_at = ?, consumer = NULL WHERE {MINE}"
RENEW = "UPDATE messages SET ready_at = ? WHERE consumer = ?"
BACKLOG = "SELECT count(*), min(published_at) FROM messages WHERE queue = ? AND ready_at <= ?"


class SpoolBroker(Broker):
    """A message that is taken is hidden for `lease` seconds; the lease is renewed as long as this process lives."""

    scheme = "spool"
    traits = BrokerTraits()

    def __init__(self, url: str) -> None:
        self._options = parse(url)
        self._database: sqlite3.Connection | None = None
        self._consumer = secrets.token_hex(8)
        self._renewing: asyncio.Task[None] | None = None
        self._reconnects = 0
        self._error = "not connected yet"

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        refused = [Refusal(one, "too large for a spool") for one in messages if len(one.body) > MESSAGE_MAX_BYTES]
        good = [one for one in messages if len(one.body) <= MESSAGE_MAX_BYTES]
        now = time.time()
        try:
            with self._connected() as database:
                database.executemany(
                    INSERT, [(one.queue, one.body, json.dumps(one.headers or {}), now, now) for one in good]
                )
        except BrokerUnavailableError as error:
            return PublishReport(good, refused=refused, reason=str(error))
        return PublishReport(refused=refused, reason=refused[0].reason) if refused else ALL_CONFIRMED

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        until = time.monotonic() + wait
        while True:
            taken, left = self._take(queue, limit), until - time.monotonic()
            if taken or left <= 0:
                return taken
            await asyncio.sleep(min(left, POLL_INTERVAL_S))

    def _take(self, queue: str, limit: int) -> list[Delivery]:
        now = time.time()
        asked = {"queue": queue, "limit": limit, "now": now, "until": now + self._options.lease}
        with self._connected() as database:
            rows = database.execute(TAKE, {**asked, "consumer": self._consumer}).fetchall()
        if rows and self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        return [Delivery(queue, body, (self._consumer, id), n > 1, json.loads(h)) for id, body, h, n in rows]

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._options.lease / 3)
            with self._connected() as database:
                database.execute(RENEW, (time.time() + self._options.lease, self._consumer))

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        now = time.time()
        done = [one.delivery.tag for one in settlements if one.verdict is Settle.ACK]
        again = [(now + one.delay, *one.delivery.tag) for one in settlements if one.verdict is Settle.RETRY]
        with self._connected() as database:
            database.executemany(ACK, done)
            database.executemany(RETRY, again)

    async def backlog(self, queue: str) -> Backlog:
        now = time.time()
        with self._connected() as database:
            waiting, oldest = database.execute(BACKLOG, (queue, now)).fetchone()
        return Backlog(waiting, None if oldest is None else now - oldest)

    async def durability(self) -> str:
        with self._connected() as database:
            (level,) = database.execute("PRAGMA synchronous").fetchone()
        return "power-safe" if level >= 2 else "crash-safe"

    def health(self) -> Health:
        up = self._database is not None
        return Health(up, "" if up else self._error, self._reconnects)

    async def reset(self) -> None:
        """What was taken through the old connection is ready again at once."""
        self._give_back()
        self._disconnect("reset")
        self._consumer = secrets.token_hex(8)
        self._reconnects += 1

    async def close(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        self._give_back()
        self._disconnect("closed")

    def _give_back(self) -> None:
        if self._database is not None:
            with self._connected() as database:
                database.execute(RENEW, (time.time(), self._consumer))

    def _disconnect(self, reason: str) -> None:
        if self._database is not None:
            self._database.close()
        self._database, self._error = None, reason

    def _connected(self) -> _Transaction:
        """One transaction: written when it ends. BrokerUnavailableError for everything that SQLite says against it."""
        if self._database is None:
            try:
                database = sqlite3.connect(self._options.file, timeout=1.0)
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.execute(TABLE)
                database.execute(INDEX)
            except sqlite3.Error as error:
                self._error = str(error)
                raise BrokerUnavailableError(f"spool {self._options.file}: {error}") from error
            self._database = database
        return _Transaction(self._database, self._options.file)


class _Transaction:
    def __init__(self, database: sqlite3.Connection, file: str) -> None:
        self._database = database
        self._file = file

    def __enter__(self) -> sqlite3.Connection:
        return self._database.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            self._database.__exit__(kind, error, trace)  # type: ignore[arg-type]
        except sqlite3.Error as failed:
            error = failed
        if isinstance(error, sqlite3.Error):
            raise BrokerUnavailableError(f"spool {self._file}: {error}") from error
