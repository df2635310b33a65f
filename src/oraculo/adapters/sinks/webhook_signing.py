"""Standard Webhooks 1.0.0: headers that let a receiver check who sent a document and when.

The scheme is `v1`, HMAC-SHA256 over `{id}.{timestamp}.{raw body}`. Every secret signs, so during a rotation the
receiver may hold the old one or the new one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

SECRET_PREFIX = "whsec_"
KEY_MIN_BYTES, KEY_MAX_BYTES = 24, 64


def key_of(secret: str) -> bytes:
    """The key inside `whsec_<base64>`. Raises ValueError, without the secret in it, when it is not one."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    try:
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not KEY_MIN_BYTES <= len(key) <= KEY_MAX_BYTES:
        size = f"{KEY_MIN_BYTES} to {KEY_MAX_BYTES} bytes"
        raise ValueError(f"a webhook secret is {SECRET_PREFIX!r} and the base64 of {size}")
    return key


def signed_headers(keys: Sequence[bytes], webhook_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The three Standard Webhooks headers of one attempt; without keys, no signature."""
    timestamp = str(int(at.timestamp()))
    headers = {"webhook-id": webhook_id, "webhook-timestamp": timestamp}
    if keys:
        content = b".".join((webhook_id.encode(), timestamp.encode(), body))
        headers["webhook-signature"] = " ".join(f"v1,{_sign(key, content)}" for key in keys)
    return headers


def _sign(key: bytes, content: bytes) -> str:
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode("ascii")
