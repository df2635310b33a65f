"""`oraculo tenants`: list tenants, register one and give it limits, forget one. In the store itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from oraculo.adapters.clock import MonotonicClock
from oraculo.bootstrap.adapters import store_of
from oraculo.bootstrap.sealing import sealing_of
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import existing
from oraculo.cli.output import AsJson, emit, instant, say, table
from oraculo.cli.texts import t
from oraculo.core.access import LOCAL, NO_LIMITS, Limits
from oraculo.core.tenants import TENANT_PATTERN, is_tenant
from oraculo.errors import WireError
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.tenants import StoredTenant
from oraculo.runtime.api_keys import KeyRing, check_limits
from oraculo.settings import settings
from oraculo.wire.views import instant as instant_text

T = TypeVar("T")
Name = Annotated[str, typer.Argument(metavar="NAME")]


def ls(json: AsJson = False) -> None:
    async def find(store: Store) -> list[dict[str, Any]]:
        return [_document(one) for one in await store.tenants()]

    found = _on_store(find)
    if json:
        emit({"tenants": found})
        return
    table(
        ("tenant", "criado_em", *_limits(NO_LIMITS)),
        ((one["tenant"], instant(one["criado_em"]), *one["limites"].values()) for one in found),
        "none.tenants",
    )


def put(
    name: Name,
    max_open: Annotated[int | None, typer.Option(help=t("o.tenant-max-open"), min=1, show_default=False)] = None,
    per_second: Annotated[float | None, typer.Option(help=t("o.tenant-per-second"), show_default=False)] = None,
    max_dead_letters: Annotated[int | None, typer.Option(help=t("o.tenant-dead"), min=1, show_default=False)] = None,
    bytes_per_second: Annotated[float | None, typer.Option(help=t("o.tenant-bytes"), show_default=False)] = None,
    max_streams: Annotated[int | None, typer.Option(help=t("o.tenant-streams"), min=1, show_default=False)] = None,
    json: AsJson = False,
) -> None:
    if not is_tenant(name):
        raise CommandError(t("tenant-name", name=name, pattern=TENANT_PATTERN), Exit.USAGE)
    limits = Limits(max_open, per_second, max_dead_letters, bytes_per_second, max_streams)
    try:
        check_limits(limits)
    except WireError as error:
        raise CommandError(error.detail, Exit.USAGE) from None

    async def keep(store: Store) -> StoredTenant:
        one = StoredTenant(name, MonotonicClock().now(), limits)
        await store.put_tenant(one)
        await _tell(store, "tenant_put", name, **_limits(limits))
        return next(found for found in await store.tenants() if found.name == name)

    document = _document(_on_store(keep))
    if json:
        emit(document)
    else:
        say(t("tenant-put", name=name))


def rm(name: Name, json: AsJson = False) -> None:
    async def forget(store: Store) -> tuple[int, bool]:
        ring = KeyRing(store, MonotonicClock())
        keys = sum(key.is_live(ring.now()) for key in await ring.all(name))
        if keys or not await store.remove_tenant(name):
            return keys, False
        await _tell(store, "tenant_removed", name)
        return 0, True

    keys, gone = _on_store(forget)
    if keys:
        raise CommandError(t("tenant-keys", name=name, count=keys), Exit.FAILED)
    if not gone:
        raise CommandError(t("tenant-unknown", name=name), Exit.NOT_FOUND)
    if json:
        emit({"tenant": name})
    else:
        say(t("tenant-removed", name=name))


async def _tell(store: Store, kind: str, name: str, **more: Any) -> None:
    said = {key: value for key, value in more.items() if value is not None}
    body = {"tenant": name, "ator": LOCAL.id, **said}
    await store.record_system_event(SystemEvent(kind, MonotonicClock().now(), body))


def _document(one: StoredTenant) -> dict[str, Any]:
    return {"tenant": one.name, "criado_em": instant_text(one.created_at), "limites": _limits(one.limits)}


def _limits(limits: Limits) -> dict[str, int | float | None]:
    return {
        "abertas": limits.open,
        "por_segundo": limits.per_second,
        "mensagens_mortas": limits.dead_letters,
        "bytes_por_segundo": limits.bytes_per_second,
        "transmissoes": limits.streams,
    }


def _on_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """Do it on the store of the settings, which has to be there."""
    chosen = settings.load()
    inputs.show_warnings(chosen)
    if chosen.store.startswith("sqlite:"):
        existing(chosen.store)

    async def run() -> T:
        store = store_of(chosen.store, may_migrate=chosen.migrate_at_start, sealing=sealing_of(chosen))
        try:
            return await work(await store.open())
        finally:
            await store.close()

    return asyncio.run(run())
