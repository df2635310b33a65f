"""The session of a browser: who logged in, and the token that every action of a page must carry.

Of ORACULO_API_KEY it is a signed cookie: it survives a restart, and changing the key ends every session; one that was
left is remembered by the process where that happened until it would have ended anyway. Of a key of the store it is a
secret that the store knows the digest of (`runtime.api_keys`); logging out ends it. Without a key there is no login;
the cookie then only ties the token to one browser, so that no other site can act.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from functools import lru_cache
from hashlib import sha256

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from oraculo.api.cookies import cookies_of
from oraculo.runtime.api_keys import is_session

SESSION_COOKIE = "oraculo_session"
SECURE_COOKIE = "__Host-oraculo_session"  # over TLS; browsers accept it from this host only
LIFE_S = 12 * 3600
CSRF_HEADER = "x-csrf-token"
_FUTURE_S = 60


ENDED_MAX = 100_000  # sessions


class Sessions:
    """The sessions of one application. Guessing the key by a cookie costs a run of scrypt for each guess."""

    def __init__(self, api_key: str) -> None:
        self._secret = _secret_of(api_key)
        self._ended: dict[str, float] = {}  # session → when it would have ended, by the clock of the machine

    def issue(self) -> str:
        content = f"{secrets.token_urlsafe(18)}.{int(time.time()) + LIFE_S}"
        return f"{content}.{self._sign('session', content)}"

    def read(self, cookie: str) -> str | None:
        """The id of a session that we signed and that is not over."""
        content, _, signature = cookie.rpartition(".")
        identity, _, expires = content.rpartition(".")
        if not identity or not hmac.compare_digest(signature.encode(), self._sign("session", content).encode()):
            return None
        left = int(expires) - time.time()
        return identity if 0 < left <= LIFE_S + _FUTURE_S and identity not in self._ended else None

    def end(self, cookie: str) -> None:
        """End the session: every copy of the cookie is worth nothing from now on."""
        identity = self.read(cookie)
        now = time.time()
        if len(self._ended) >= ENDED_MAX:
            self._ended = {one: until for one, until in self._ended.items() if until > now}
        if identity is not None and len(self._ended) < ENDED_MAX:
            self._ended[identity] = now + LIFE_S + _FUTURE_S

    def token(self, identity: str) -> str:
        return self._sign("csrf", identity)

    def is_token(self, identity: str, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token(identity).encode())

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).hexdigest()


@lru_cache(16)
def _secret_of(api_key: str) -> bytes:
    return hashlib.scrypt(api_key.encode(), salt=b"oraculo dashboard", n=2**14, r=8, p=1, dklen=32)


def cookie_of(sessions: Sessions, headers: Headers) -> str | None:
    """Return the cookie of the session: one that we signed and is not over, or one that only the store can judge."""
    cookies = cookies_of(headers)
    found = (cookies[name] for name in (SECURE_COOKIE, SESSION_COOKIE) if name in cookies)
    return next((cookie for cookie in found if is_session(cookie) or sessions.read(cookie) is not None), None)


def identity_of(sessions: Sessions, headers: Headers) -> str | None:
    """Return what the token of the request's session is made from, or None. That of a stored key is the whole cookie, a
    secret; whether it is good is for `Auth` to say."""
    cookie = cookie_of(sessions, headers)
    return cookie if cookie is None or is_session(cookie) else sessions.read(cookie)


def remember(response: Response, connection: HTTPConnection, value: str) -> None:
    secure = connection.url.scheme == "https"
    name = SECURE_COOKIE if secure else SESSION_COOKIE
    response.set_cookie(name, value, max_age=LIFE_S, path="/", httponly=True, samesite="strict", secure=secure)


def forget(response: Response) -> None:
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict")
    response.delete_cookie(SECURE_COOKIE, path="/", httponly=True, samesite="strict", secure=True)
