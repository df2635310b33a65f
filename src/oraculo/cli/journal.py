"""Straight to the store, without a server: the journal of one orchestration, and whatever else works on what is there.

SQLite is read with a connection that cannot write, so that a running server is not disturbed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from oraculo.adapters.brokers.registry import scheme_of
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.sinks.flow_topics import FlowTopics
from oraculo.adapters.sinks.ticket_webhooks import TicketWebhooks
from oraculo.adapters.stores.sqlite import data_keys as sqlite_data_keys
from oraculo.adapters.stores.sqlite import journal as sqlite_journal
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.bootstrap.adapters import sqlite_path, store_of
from oraculo.bootstrap.sealing import sealing_of
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import emit, say
from oraculo.cli.texts import t
from oraculo.errors import StoreUnavailableError, UnknownIdError
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.settings import settings


def existing(url: str) -> str:
    """The path of the SQLite database that `url` names; it must be there, since nothing here should make a new one."""
    path = sqlite_path(url)
    if path == ":memory:" or not Path(path).is_file():
        raise CommandError(t("no-store", path=path), Exit.NOT_FOUND)
    return path


def projection_types() -> dict[str, str]:
    """The one type of orchestrations that a projection reads, for each projection that does not read all."""
    return {FlowTopics.name: FlowTopics.tipo, TicketWebhooks.name: TicketWebhooks.tipo}


@asynccontextmanager
async def opened(url: str, sealing: Sealing | None = None) -> AsyncIterator[Store]:
    """The store, which must be there."""
    if scheme_of(url) == "sqlite":
        existing(url)
    store = store_of(url, sealing=sealing_of(settings.load()) if sealing is None else sealing)
    try:
        yield await (store.open() if isinstance(store, SqliteStore) else store.open(create=False))
    finally:
        await store.close()


def rebuild_projection(projection: str, text: str, json: bool) -> None:
    """Forget what a projection has learnt, so that it is learnt again from the journal; `text` is what is said then."""

    async def forget() -> None:
        async with opened(settings.load().store) as store:
            await store.forget_projected(projection)

    asyncio.run(forget())
    if json:
        emit({"projecao": projection, "desde": 0})
    else:
        say(t(text))


def recorded(url: str, correlation_id: str) -> list[Recorded]:
    steps = _from_sqlite(url, correlation_id) if scheme_of(url) == "sqlite" else asyncio.run(_from(url, correlation_id))
    if not steps:
        raise UnknownIdError("orchestration", correlation_id)
    return steps


async def _from(url: str, correlation_id: str) -> list[Recorded]:
    async with opened(url) as store:
        run = (await store.locate([correlation_id])).get(correlation_id)
        return [] if run is None else (await store.load([run])).get(run) or await store.events(run, 0, 1)


def read_only(path: str) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(5000)
    return connection


def _from_sqlite(url: str, correlation_id: str) -> list[Recorded]:
    path = existing(url)
    try:
        connection = read_only(path)
        try:
            run = sqlite_journal.locate(connection, [correlation_id]).get(correlation_id)
            sealing = sealing_of(settings.load())
            if sealing.on:
                sealing.take(sqlite_data_keys.data_keys(connection))
            return [] if run is None else sqlite_journal.events(connection, run, 0, -1, sealing)
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreUnavailableError(f"cannot read the database {path!r}: {error}") from error
