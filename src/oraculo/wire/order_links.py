"""Links to collected data: unguessable and good until a given second, for every holder of the order."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from urllib.parse import urlencode

PATH = "/api/v1/order-data"
EXPIRES, SIGNATURE = "expira", "assinatura"


class OrderLinks:
    """`key` gives what links are signed with; `base` is where the server is found."""

    def __init__(self, key: Callable[[], bytes], base: str) -> None:
        self._read_key = key
        self._key: bytes | None = None
        self._base = base.rstrip("/")

    def load(self) -> None:
        """Read the key, once. OSError when that cannot be."""
        if self._key is None:
            self._key = self._read_key()

    def url(self, digest: str, until: datetime) -> str:
        """The link to these data, good until then."""
        expires = int(until.timestamp())
        query = urlencode({EXPIRES: expires, SIGNATURE: self._sign(digest, expires)})
        return f"{self._base}{PATH}/{digest}?{query}"

    def allows(self, digest: str, query: Mapping[str, str], now: datetime) -> bool:
        """True if the link to these data is one of ours and still good."""
        expires = query.get(EXPIRES, "")
        if not (expires.isascii() and expires.isdigit() and len(expires) <= 12) or int(expires) <= now.timestamp():
            return False
        return hmac.compare_digest(query.get(SIGNATURE, "").encode(), self._sign(digest, int(expires)).encode())

    def _sign(self, digest: str, expires: int) -> str:
        self.load()
        assert self._key is not None
        return hmac.new(self._key, f"{digest}.{expires}".encode(), sha256).hexdigest()
