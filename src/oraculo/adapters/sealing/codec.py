"""The one place that knows whether and how payloads are sealed: stores and folders hand over bytes and a place.

A sealed text is `enc1.<key id>.<base64>`, sealed bytes are `enc1`, the key id, nonce, ciphertext and tag. JSON begins
with neither, so rows from before are read as they are. The store reads its keys and hands them over (`take`).
"""

from __future__ import annotations

import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.sealing import aes_gcm
from oraculo.errors import SealError, SettingsError, StoreError
from oraculo.ports.data_keys import StoredDataKey, UnknownDataKeyError

DATA_KEY = "ORACULO_DATA_KEY"
RELOAD_INTERVAL_S = 5.0  # after which other processes know of a key that was forgotten
KEY_ID_BYTES = 8
MARK = b"enc1"
TEXT_MARK = "enc1."
_TEXT_HEAD_CHARS = len(TEXT_MARK) + 2 * KEY_ID_BYTES + 1
_BYTES_HEAD = len(MARK) + KEY_ID_BYTES
SEALED_OVERHEAD_BYTES = _BYTES_HEAD + aes_gcm.OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class DataKey:
    id: str
    secret: bytes


class Sealing:
    """`masters`: the master key, and older ones that may have wrapped what is there; none: nothing is sealed."""

    def __init__(self, masters: Sequence[bytes] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._masters = tuple(masters)
        self.on = bool(self._masters)
        self._clock = clock
        self._keys: dict[str, bytes | None] = {}  # None: forgotten
        self._newest: dict[str, DataKey] = {}
        self._generations: dict[str, int] = {}
        self._load_at = 0.0

    # -- keys --------------------------------------------------------------------------------------------------------

    @property
    def stale(self) -> bool:
        """True if the keys have to be handed over before anything is sealed or opened."""
        return self.on and self._clock() >= self._load_at

    def expire(self) -> None:
        """Take nothing in memory for true any more."""
        self._load_at = 0.0

    def take(self, keys: Iterable[StoredDataKey]) -> None:
        """Replace the keys in memory. SettingsError when a master key is missing."""
        known: dict[str, bytes | None] = {}
        newest: dict[str, DataKey] = {}
        generations: dict[str, int] = {}
        for one in sorted(keys, key=lambda key: (key.tenant, key.generation)):
            generations[one.tenant] = one.generation
            known[one.id] = secret = self._keys.get(one.id) if one.wrapped is not None else None
            if one.wrapped is not None and secret is None:
                known[one.id] = secret = self._unwrapped(one, one.wrapped)
            newest.pop(one.tenant, None)
            if secret is not None:
                newest[one.tenant] = DataKey(one.id, secret)
        self._keys, self._newest, self._generations = known, newest, generations
        self._load_at = self._clock() + RELOAD_INTERVAL_S

    def _unwrapped(self, one: StoredDataKey, wrapped: bytes) -> bytes:
        try:
            return aes_gcm.unwrap(self._masters, wrapped, one.master, one.tenant, one.id)
        except ValueError as error:
            why = f"the key of tenant {one.tenant!r} in the store cannot be used: {error}"
            raise SettingsError(DATA_KEY, "***", why) from None

    def lacking(self, tenants: Iterable[str]) -> list[str]:
        """The tenants that have no key to seal with."""
        return [tenant for tenant in tenants if tenant not in self._newest]

    def new_key(self, tenant: str) -> StoredDataKey:
        """A key of the next generation, to be kept by the store."""
        id = secrets.token_hex(KEY_ID_BYTES)
        master = self._masters[0]
        wrapped = aes_gcm.wrap(master, secrets.token_bytes(aes_gcm.KEY_BYTES), tenant, id)
        generation = self._generations.get(tenant, 0) + 1
        return StoredDataKey(id, tenant, generation, wrapped, aes_gcm.master_id(master), MonotonicClock().now())

    def rewrapped(self, one: StoredDataKey) -> StoredDataKey | None:
        """The key wrapped by the present master key; None when it is already, or was forgotten."""
        master = self._masters[0]
        if one.wrapped is None or one.master == aes_gcm.master_id(master):
            return None
        secret = self._unwrapped(one, one.wrapped)
        return replace(one, wrapped=aes_gcm.wrap(master, secret, one.tenant, one.id), master=aes_gcm.master_id(master))

    def key_id(self, tenant: str) -> str:
        """The id of the key that seals for a tenant."""
        return self._newest[tenant].id

    # -- texts and bytes ---------------------------------------------------------------------------------------------

    def seal_text(self, tenant: str, place: str, plain: bytes) -> str:
        key = self._newest[tenant]
        return f"{TEXT_MARK}{key.id}.{b64encode(aes_gcm.seal(key.secret, place, plain)).decode()}"

    def open_text(self, place: str, text: str) -> str | None:
        """The plain text, of one that is sealed and of one that is not; None when its key was forgotten."""
        if not text.startswith(TEXT_MARK):
            return text
        secret = self._secret(text[len(TEXT_MARK) : _TEXT_HEAD_CHARS - 1])
        if secret is None:
            return None
        return self._opened(secret, place, b64decode(text[_TEXT_HEAD_CHARS:])).decode()

    def seal_bytes(self, tenant: str, place: str, plain: bytes) -> bytes:
        key = self._newest[tenant]
        return MARK + bytes.fromhex(key.id) + aes_gcm.seal(key.secret, place, plain)

    def open_bytes(self, place: str, sealed: bytes) -> bytes | None:
        """The plain bytes of what `seal_bytes` gave; None when its key was forgotten."""
        secret = self._secret(sealed[len(MARK) : _BYTES_HEAD].hex())
        return None if secret is None else self._opened(secret, place, sealed[_BYTES_HEAD:])

    def secret_for(self, tenant: str) -> DataKey:
        """The key of a tenant itself, for what is sealed in pieces."""
        return self._newest[tenant]

    def secret_of(self, id: str) -> bytes | None:
        """The key of that id itself; None when it was forgotten."""
        return self._secret(id)

    def _secret(self, id: str) -> bytes | None:
        if not self.on:
            raise StoreError(f"what is stored is sealed: set {DATA_KEY} to the master key that it was sealed under")
        try:
            return self._keys[id]
        except KeyError:
            raise UnknownDataKeyError(id) from None

    @staticmethod
    def _opened(secret: bytes, place: str, sealed: bytes) -> bytes:
        try:
            return aes_gcm.unseal(secret, place, sealed)
        except ValueError:
            raise SealError(f"{place} does not open: it was changed, or belongs elsewhere") from None


def is_sealed(text: str) -> bool:
    """True if a text of a store is sealed."""
    return text.startswith(TEXT_MARK)
