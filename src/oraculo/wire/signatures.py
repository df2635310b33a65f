"""Signatures of messages: Ed25519 over the bytes of a body, made with a key that the store knows by its id.

A signature is written `<key id>.<86 characters>`, base64url without padding. It stands in the header HEADER of a
message, over the whole body; or it is the last member of a JSON object, `,"assinatura":"…"}`, over the object without
it. Nothing in a message chooses an algorithm; the id only picks one of the keys that are known.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

HEADER: Final = "oraculo-signature"
MEMBER: Final = "assinatura"
KEY_BYTES: Final = 32
_CONTEXT: Final = b"oraculo-message\n"  # so that a signature of something else is none of a message
_TEXT: Final = re.compile(r"([a-z2-7]{12})\.([A-Za-z0-9_-]{86})", re.ASCII)
_MEMBER_START: Final = b',"assinatura":"'
_MEMBER_BYTES: Final = len(_MEMBER_START) + 12 + 1 + 86 + len(b'"}')
_SIGNING_KEY: Final = re.compile(r"orcw_([a-z2-7]{12})_([A-Za-z0-9_-]{43})", re.ASCII)

Sign = Callable[[bytes], bytes]


class Signature(NamedTuple):
    """A signature as it came: whose it says it is, and the bytes that it has to be over."""

    key_id: str
    value: bytes
    over: bytes


def signed_header(body: bytes, key_id: str, sign: Sign) -> str:
    """The signature of a body, for the header of its message."""
    return f"{key_id}.{encoded(sign(_CONTEXT + body))}"


def signed_body(body: bytes, key_id: str, sign: Sign) -> bytes:
    """The JSON object with its signature as the last member."""
    return b'%b,"assinatura":"%b"}' % (body[:-1], signed_header(body, key_id, sign).encode())


def signature_of(body: bytes, headers: Mapping[str, str]) -> Signature | None:
    """The signature that a message came with; None when it has none of the right form. That of the header counts where
    there are two."""
    if HEADER in headers:
        return _read(headers[HEADER], body)
    tail = body[-_MEMBER_BYTES:]
    if not tail.startswith(_MEMBER_START) or not tail.endswith(b'"}'):
        return None
    text = tail[len(_MEMBER_START) : -2].decode("ascii", "replace")
    return _read(text, body[:-_MEMBER_BYTES] + b"}")


def _read(text: str, body: bytes) -> Signature | None:
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    value = decoded(found[2])
    return None if value is None else Signature(found[1], value, _CONTEXT + body)


def signing_key_text(key_id: str, secret: bytes) -> str:
    """The private half of a key as its owner keeps it (ORACULO_SIGNING_KEY)."""
    return f"orcw_{key_id}_{encoded(secret)}"


def read_signing_key(text: str) -> tuple[str, bytes] | None:
    """The id and the private half in such a text; None when it has another form."""
    found = _SIGNING_KEY.fullmatch(text)
    secret = None if found is None else decoded(found[2])
    return None if found is None or secret is None else (found[1], secret)


def encoded(raw: bytes) -> str:
    """The bytes in base64url without padding."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> bytes | None:
    """The bytes of such a text; None unless it is just what `encoded` writes."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, Base64Error):
        return None
    return raw if encoded(raw) == text else None
