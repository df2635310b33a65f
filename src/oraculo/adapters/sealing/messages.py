"""Messages of an engine, which Celery's broker and Temporal keep, sealed with the keys that rows are sealed with."""

from __future__ import annotations

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.sealed_rows import opened, refresh
from oraculo.errors import ErasedError
from oraculo.ports.data_keys import DataKeys

PLACE = "engine-message"  # no row of the store is sealed for it, so none passes for a message


class StoreMessageSeal:
    """Seals with the keys of `keys`, which both sides of an engine have."""

    def __init__(self, sealing: Sealing, keys: DataKeys) -> None:
        self._sealing = sealing
        self._keys = keys

    async def seal(self, tenant: str, plain: bytes) -> bytes:
        await refresh(self._sealing, self._keys, [tenant])
        return self._sealing.seal_bytes(tenant, PLACE, plain)

    async def open(self, sealed: bytes) -> bytes:
        plain = await opened(self._sealing, self._keys, lambda: self._plain(sealed))
        if plain is None:
            raise ErasedError("message")
        return plain

    async def _plain(self, sealed: bytes) -> bytes | None:
        return self._sealing.open_bytes(PLACE, sealed)
