"""AES-256-GCM by OpenSSL (`cryptography`, imported when a key is needed).

Every place has a key of its own, derived from the tenant's, so that a text opens in the place that it was sealed for
and in no other, and no number of rows uses up the nonces of a key.
"""

from __future__ import annotations

import hmac
import os
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from oraculo.errors import MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES


def cipher(key: bytes) -> AESGCM:
    """What seals and opens with this key."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingExtraError("ORACULO_DATA_KEY", "encryption") from error
    return AESGCM(key)


def derived(key: bytes, place: str) -> bytes:
    """The key of one place."""
    return hmac.digest(key, place.encode(), sha256)


def seal(key: bytes, place: str, plain: bytes) -> bytes:
    """Nonce, ciphertext and tag."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + cipher(derived(key, place)).encrypt(nonce, plain, None)


def unseal(key: bytes, place: str, sealed: bytes) -> bytes:
    """The plain bytes; ValueError when they were not sealed with this key for this place, or were changed."""
    from cryptography.exceptions import InvalidTag

    try:
        return cipher(derived(key, place)).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
    except (InvalidTag, ValueError):  # too short to be anything
        raise ValueError("it does not open") from None


def read_key(text: str) -> bytes:
    """32 bytes, in hexadecimal or base64; ValueError says what is needed, and shows nothing."""
    for read in (bytes.fromhex, _base64):
        try:
            key = read(text)
        except ValueError:
            continue
        if len(key) == KEY_BYTES:
            return key
    raise ValueError("32 random bytes in hexadecimal or base64, as `openssl rand -hex 32` makes them")


def master_id(key: bytes) -> str:
    """A name for a master key that tells nothing of it."""
    return sha256(b"oraculo master key\n" + key).hexdigest()[:16]


def wrap(master: bytes, key: bytes, tenant: str, id: str) -> bytes:
    return seal(master, f"data-key/{tenant}/{id}", key)


def unwrap(masters: Sequence[bytes], wrapped: bytes, master: str, tenant: str, id: str) -> bytes:
    """The key; ValueError when none of the master keys wrapped it."""
    for one in masters:
        if master_id(one) == master:
            return unseal(one, f"data-key/{tenant}/{id}", wrapped)
    raise ValueError("it was wrapped by another master key")


def _base64(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text.replace("+", "-").replace("/", "_") + "=" * (-len(text) % 4))
    except Base64Error as error:
        raise ValueError("no base64") from error
