"""Ed25519 keys, by OpenSSL (`cryptography`, imported when a key is needed)."""

from __future__ import annotations

import secrets
from base64 import b32encode
from hashlib import sha256
from typing import TYPE_CHECKING

from oraculo.errors import MissingExtraError
from oraculo.wire.ticket_tokens import TokenKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SECRET_BYTES = 32
_KID_CHARS = 12


def new_secret() -> bytes:
    """The private half of a new key."""
    return secrets.token_bytes(SECRET_BYTES)


def key_of(secret: bytes) -> TokenKey:
    """The key of this private half. Its `kid` is a digest of the public half, so it is the same everywhere."""
    private = private_key(secret)
    public = private.public_key().public_bytes_raw()
    kid = b32encode(sha256(public).digest()).decode().lower()[:_KID_CHARS]
    return TokenKey(kid, private.sign, public)


def verify(public: bytes, signature: bytes, text: bytes) -> bool:
    """True if the owner of this public half signed the text. Any signature and text may be given."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def private_key(secret: bytes) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise MissingExtraError("ORACULO_RESULT_TOKENS", "tokens") from error
    return Ed25519PrivateKey.from_private_bytes(secret)
