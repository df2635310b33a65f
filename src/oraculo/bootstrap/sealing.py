"""Settings → how payloads are sealed, and whether a store can be used like that."""

from __future__ import annotations

from contextlib import AsyncExitStack

from oraculo.adapters.sealing import aes_gcm
from oraculo.adapters.sealing.codec import DATA_KEY, Sealing
from oraculo.adapters.sealing.messages import StoreMessageSeal
from oraculo.bootstrap.adapters import store_of
from oraculo.errors import SettingsError
from oraculo.ports.data_keys import DataKeys
from oraculo.ports.store import Store
from oraculo.settings.settings import Settings


def sealing_of(settings: Settings) -> Sealing:
    """What seals payloads; without ORACULO_DATA_KEY it seals nothing."""
    wanted = settings.sealing
    if not wanted.key:
        return Sealing()
    masters = [bytes.fromhex(text) for text in (wanted.key, *wanted.old_keys)]
    aes_gcm.cipher(masters[0])  # what is not installed is said now
    return Sealing(masters)


def message_seal(sealing: Sealing, keys: DataKeys) -> StoreMessageSeal | None:
    """What seals the messages of an engine; None where nothing is sealed."""
    return StoreMessageSeal(sealing, keys) if sealing.on else None


async def sealed_store(settings: Settings, sealing: Sealing, stack: AsyncExitStack) -> Store:
    """The store of an engine, opened; SettingsError when it is sealed, and not with these master keys."""
    store = store_of(settings.store, exclusive=True, may_migrate=settings.migrate_at_start, sealing=sealing)
    stack.push_async_callback(store.close)
    await _check(await store.open(), sealing)
    return store


async def _check(store: DataKeys, sealing: Sealing) -> None:
    keys = await store.data_keys()
    if sealing.on:
        sealing.take(keys)
        return
    tenants = sorted({one.tenant for one in keys if one.wrapped is not None})
    if tenants:
        raise SettingsError(DATA_KEY, "", f"the store is sealed ({', '.join(tenants)}): the master key is needed")
