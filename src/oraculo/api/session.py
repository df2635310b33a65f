"""The session of a browser: who logged in, and the token that every action of a page must carry.

A signed cookie, nothing on the server: it survives a restart, and changing ORACULO_API_KEY ends every session. Without
a key there is nobody to log in; the cookie then only ties the token to one browser, so that no other site can act.
"""

from __future__ import annotations

import hmac
import secrets
import time
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

COOKIE = "oraculo_session"
SECURE_COOKIE = "__Host-oraculo_session"  # over TLS; browsers take it from nobody but this very host
LIFE_S = 12 * 3600
CSRF_HEADER = "x-csrf-token"
_FUTURE_S = 60


class Sessions:
    def __init__(self, api_key: str) -> None:
        self._secret = hmac.digest(api_key.encode(), b"oraculo dashboard", "sha256")

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
        return identity if 0 < left <= LIFE_S + _FUTURE_S else None

    def token(self, identity: str) -> str:
        return self._sign("csrf", identity)

    def is_token(self, identity: str, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token(identity).encode())

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).hexdigest()


def identity_of(sessions: Sessions, headers: Headers) -> str | None:
    """The session of whoever asks, if any."""
    cookies: SimpleCookie = SimpleCookie()
    for header in headers.getlist("cookie"):
        try:
            cookies.load(header)
        except CookieError:
            continue
    for name in (SECURE_COOKIE, COOKIE):
        if name in cookies:
            found = sessions.read(cookies[name].value)
            if found is not None:
                return found
    return None


def remember(response: Response, connection: HTTPConnection, value: str) -> None:
    secure = connection.url.scheme == "https"
    name = SECURE_COOKIE if secure else COOKIE
    response.set_cookie(name, value, max_age=LIFE_S, path="/", httponly=True, samesite="strict", secure=secure)


def forget(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    response.delete_cookie(SECURE_COOKIE, path="/", httponly=True, samesite="strict", secure=True)
