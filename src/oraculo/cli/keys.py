"""`oraculo keys`: make, list, replace and revoke keys of the API, in the store itself or through a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.signing.ed25519 import key_of, new_secret
from oraculo.adapters.stores.sqlite.connections import MEMORY
from oraculo.api.keys import shown
from oraculo.bootstrap.adapters import sqlite_path, store_of
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import existing
from oraculo.cli.output import AsJson, emit, instant, note, say, table
from oraculo.cli.texts import t
from oraculo.core.access import LOCAL, AccessRole, Limits
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.errors import WireError
from oraculo.runtime.api_keys import OVERLAP, KeyRing
from oraculo.settings import settings
from oraculo.settings.settings import Settings
from oraculo.wire import strict_json
from oraculo.wire.signatures import encoded, signing_key_text

T = TypeVar("T")
Id = Annotated[str, typer.Argument(metavar="ID")]
KeyUrl = Annotated[str | None, typer.Option("--url", help=t("o.key-url"), show_default=False)]
Expires = Annotated[str | None, typer.Option(help=t("o.key-expires"), metavar="AGE", show_default=False)]


def create(
    role: Annotated[AccessRole, typer.Option(help=t("o.key-role"))],
    tenant: Annotated[str | None, typer.Option(help=t("o.key-tenant"), show_default=DEFAULT_TENANT)] = None,
    queue: Annotated[list[str] | None, typer.Option(help=t("o.key-queue"), show_default=False)] = None,
    expires: Expires = None,
    nota: Annotated[str, typer.Option("--nota", "--note", help=t("o.key-note"), show_default=False)] = "",
    max_open: Annotated[int | None, typer.Option(help=t("o.key-max-open"), min=1, show_default=False)] = None,
    per_second: Annotated[float | None, typer.Option(help=t("o.key-per-second"), show_default=False)] = None,
    sign: Annotated[bool, typer.Option("--sign", help=t("o.key-sign"))] = False,
    public_key: Annotated[str | None, typer.Option(help=t("o.key-public"), show_default=False)] = None,
    url: KeyUrl = None,
    json: AsJson = False,
) -> None:
    life = None if expires is None else inputs.age(expires)
    queues = queue or []
    secret = new_secret() if sign else None
    if secret is not None:
        if public_key is not None:
            raise CommandError(t("key-sign-twice"), Exit.USAGE)
        public_key = encoded(key_of(secret).public)
    if url is not None:
        seconds = None if life is None else life.total_seconds()
        with inputs.client(url) as client:
            made: Any = client.create_key(
                role.value,
                tenant=tenant,
                queues=queues,
                expires_s=seconds,
                note=nota,
                max_open=max_open,
                per_second=per_second,
                public_key=public_key,
            )
    else:

        async def make(keys: KeyRing) -> Any:
            limits = Limits(max_open, per_second)
            key, text = await keys.create(
                role,
                by=LOCAL,
                tenant=tenant or DEFAULT_TENANT,
                queues=queues,
                life=life,
                note=nota,
                limits=limits,
                public_key=public_key,
            )
            return {**_document(keys, key), "key": text}

        made = _on_store(make, may_create=True)
    if secret is not None:
        made["signing_key"] = signing_key_text(made["id"], secret)
    _show_once(made, json)


def ls(url: KeyUrl = None, json: AsJson = False) -> None:
    if url is not None:
        with inputs.client(url) as client:
            found: Any = client.keys()
    else:

        async def find(keys: KeyRing) -> Any:
            return [_document(keys, key) for key in await keys.all()]

        found = _on_store(find)
    if json:
        emit({"keys": found})
        return
    table(
        ("id", "role", "tenant", "situacao", "criada_em", "expira_em", "usada_em", "queues", "nota"),
        (
            (
                one["id"],
                one["role"],
                one["tenant"],
                one["situacao"],
                instant(one["criada_em"]),
                instant(one["expira_em"]),
                instant(one["usada_em"]),
                ", ".join(one["queues"]),
                one["nota"],
            )
            for one in found
        ),
        "none.keys",
    )


def rotate(
    id: Id,
    overlap: Annotated[str | None, typer.Option(help=t("o.key-overlap"), metavar="AGE", show_default=False)] = None,
    expires: Expires = None,
    url: KeyUrl = None,
    json: AsJson = False,
) -> None:
    good = OVERLAP if overlap is None else inputs.age(overlap)
    life = None if expires is None else inputs.age(expires)
    if url is not None:
        seconds = None if life is None else life.total_seconds()
        with inputs.client(url) as client:
            made: Any = client.rotate_key(id, overlap_s=good.total_seconds(), expires_s=seconds)
    else:

        async def replace(keys: KeyRing) -> Any:
            key, text = await keys.rotate(id, by=LOCAL, overlap=good, life=life)
            return {**_document(keys, key), "key": text}

        made = _on_store(replace)
    _show_once(made, json)


def revoke(id: Id, url: KeyUrl = None, json: AsJson = False) -> None:
    if url is not None:
        with inputs.client(url) as client:
            gone: Any = client.revoke_key(id)
    else:

        async def end(keys: KeyRing) -> Any:
            return _document(keys, await keys.revoke(id, by=LOCAL))

        gone = _on_store(end)
    if json:
        emit(gone)
    else:
        say(t("key-revoked", id=gone["id"]))


def has_administrator(chosen: Settings) -> bool:
    """True if the store of the settings has a key that may make others. A database that is not there is not made."""
    if chosen.store.startswith("sqlite:") and not Path(sqlite_path(chosen.store)).is_file():
        return False
    return asyncio.run(_with_keys(chosen, KeyRing.has_administrator))


def _on_store(work: Callable[[KeyRing], Awaitable[T]], *, may_create: bool = False) -> T:
    """Do it on the store of the settings. Only the first key may make a database that is not there."""
    chosen = settings.load()
    inputs.show_warnings(chosen)
    if chosen.store.startswith("sqlite:") and not may_create:
        existing(chosen.store)
    if sqlite_path(chosen.store) == MEMORY and chosen.store.startswith("sqlite:"):
        raise CommandError(t("no-store", path=MEMORY), Exit.NOT_FOUND)
    try:
        return asyncio.run(_with_keys(chosen, work))
    except WireError as error:
        raise CommandError(error.detail, Exit.USAGE) from None


async def _with_keys(chosen: Settings, work: Callable[[KeyRing], Awaitable[T]]) -> T:
    async with _opened(chosen) as keys:
        return await work(keys)


@asynccontextmanager
async def _opened(chosen: Settings) -> AsyncIterator[KeyRing]:
    store = store_of(chosen.store, may_migrate=chosen.migrate_at_start)
    try:
        yield KeyRing(await store.open(), MonotonicClock())
    finally:
        await store.close()


def _document(keys: KeyRing, key: Any) -> dict[str, Any]:
    """The key as the API tells it, instants as text."""
    document: dict[str, Any] = strict_json.loads(strict_json.dumps(shown(key, keys.now())))
    return document


def _show_once(made: Any, json: bool) -> None:
    """The key itself is all that goes to standard output, so that a script can take it."""
    if json:
        emit(made)
        return
    note(t("key-once", id=made["id"], role=made["role"]))
    say(made["key"])
    if "signing_key" in made:
        note(t("key-signs"))
        say(made["signing_key"])
