"""`oraculo data-keys`: the keys of tenants that payloads are sealed with. In the store itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.sealing.codec import Sealing
from oraculo.bootstrap.sealing import sealing_of
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import opened
from oraculo.cli.output import AsJson, Yes, emit, instant, say, table
from oraculo.cli.texts import t
from oraculo.core.access import LOCAL
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.ports.data_keys import ForgottenKeys, StoredDataKey
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.settings import settings
from oraculo.wire.views import instant as instant_text

T = TypeVar("T")
Name = Annotated[str, typer.Argument(metavar="TENANT")]
MaybeName = Annotated[str | None, typer.Argument(metavar="TENANT", show_default=False)]


def ls(json: AsJson = False) -> None:
    found = [_document(one) for one in _on_store(lambda store, _: store.data_keys(), sealed=False)]
    if json:
        emit({"keys": found})
        return
    columns = ("criada_em", "esquecida_em")
    rows = ((one["tenant"], one["id"], one["mestra"], *(instant(one[name]) for name in columns)) for one in found)
    table(("tenant", "id", "mestra", *columns), rows, "none.data-keys")


def seal(name: MaybeName = None, json: AsJson = False) -> None:
    async def work(store: Store, _: Sealing) -> dict[str, int]:
        names = [name] if name else sorted({DEFAULT_TENANT, *(one.name for one in await store.tenants())})
        return {one: await store.reseal(one) for one in names}

    done = _on_store(work)
    if json:
        emit({"sealed": done})
        return
    for one, count in done.items():
        say(t("data-key-sealed", name=one, count=count))


def rotate(name: Name, json: AsJson = False) -> None:
    async def work(store: Store, sealing: Sealing) -> StoredDataKey:
        sealing.take(await store.data_keys())
        key = sealing.new_key(name)
        await store.add_data_key(key)
        await _tell(store, "data_key_rotated", name, id=key.id)
        return key

    key = _on_store(work)
    if json:
        emit(_document(key))
    else:
        say(t("data-key-made", name=name, id=key.id))


def rewrap(json: AsJson = False) -> None:
    async def work(store: Store, sealing: Sealing) -> int:
        wrapped = [anew for one in await store.data_keys() if (anew := sealing.rewrapped(one)) is not None]
        done = [await store.rewrap_data_key(one) for one in wrapped]
        if wrapped:
            await _tell(store, "data_keys_rewrapped", DEFAULT_TENANT, mestra=wrapped[0].master)
        return sum(done)

    count = _on_store(work)
    if json:
        emit({"rewrapped": count})
    else:
        say(t("data-key-rewrapped", count=count))


def forget(name: Name, yes: Yes = False, json: AsJson = False) -> None:
    if not yes:
        if not sys.stdin.isatty():
            raise CommandError(t("need-yes"), Exit.USAGE)
        typer.confirm(t("data-key-confirm", name=name), abort=True, err=True)

    async def work(store: Store, _: Sealing) -> ForgottenKeys:
        if not any(one.tenant == name and one.wrapped is not None for one in await store.data_keys()):
            raise CommandError(t("data-key-unknown", name=name), Exit.NOT_FOUND)
        await store.reseal(name)  # what is in clear would outlive the key
        done = await store.forget_data_keys(name, MonotonicClock().now())
        if done.live_runs:
            raise CommandError(t("data-key-live", name=name, count=done.live_runs), Exit.FAILED)
        await _tell(store, "data_keys_forgotten", name, chaves=done.keys, agendamentos=done.schedules)
        return done

    done = _on_store(work)
    if json:
        emit({"tenant": name, "forgotten": done.keys, "schedules": done.schedules})
    else:
        say(t("data-key-forgotten", name=name, count=done.keys, schedules=done.schedules))


async def _tell(store: Store, kind: str, tenant: str, **more: Any) -> None:
    body = {"tenant": tenant, "ator": LOCAL.id, **more}
    await store.record_system_event(SystemEvent(kind, MonotonicClock().now(), body))


def _document(one: StoredDataKey) -> dict[str, Any]:
    forgotten = None if one.forgotten_at is None else instant_text(one.forgotten_at)
    return {
        "tenant": one.tenant,
        "id": one.id,
        "mestra": one.master,
        "criada_em": instant_text(one.created_at),
        "esquecida_em": forgotten,
    }


def _on_store(work: Callable[[Store, Sealing], Awaitable[T]], *, sealed: bool = True) -> T:
    """Do it on the store of the settings, which has to be there; with the master key, unless it is not needed."""
    chosen = settings.load()
    sealing = sealing_of(chosen)
    if sealed and not sealing.on:
        raise CommandError(t("data-key-none"), Exit.USAGE)

    async def run() -> T:
        async with opened(chosen.store, sealing) as store:
            return await work(store, sealing)

    return asyncio.run(run())
