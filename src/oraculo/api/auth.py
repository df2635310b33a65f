"""Authentication: ORACULO_API_KEY, or a key of the store; without any, only callers on this machine and of this site.

`/health` and `/ready` are open, by exact path: probes have no keys, and learn no more than whether it works. So are the
page where a key is given and the style and scripts that it needs. Everything else, unknown routes and `/metrics`
included, needs a key, or the session of a browser whose user gave one. With a session alone, whatever changes something
needs its token too. On loopback and without ORACULO_API_KEY no key is asked for, but one that is sent is judged.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from oraculo.api import problems
from oraculo.api.credentials import API_KEY_MIN_CHARS, UNAUTHORIZED, CredentialJudge
from oraculo.api.problems import ProblemError
from oraculo.api.session import CSRF_HEADER, Sessions, cookie_of, identity_of
from oraculo.api.spiffe import SpiffeIdentities
from oraculo.api.tls import SPIFFE_ID
from oraculo.core.access import LOCAL, SHARED_KEY, STRANGER, Actor, PrincipalKind
from oraculo.core.access import Scope as AccessScope
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.errors import IdentityUnavailableError, SettingsError, StoreError
from oraculo.loopback import is_loopback
from oraculo.runtime.api_keys import is_session
from oraculo.settings.settings import Settings
from oraculo.wire import order_links

OPEN_PATHS = frozenset({"/health", "/ready", "/.well-known/jwks.json"})
LOGIN_PATH = "/login"
STATIC_PREFIX = "/static/"
FORM_PREFIX = "/ui/"  # forms of pages: each carries the token in a field, and checks it (dashboard/forms.py)
HOSTS_KEPT = 64  # headers Host that were judged
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Names under these belong to no one, so a browser cannot be led here by one (RFC 6761). Names of one word and those
# under .local and .internal do: a name server of the local network can point them here.
UNOWNED_SUFFIXES = (".localhost", ".test", ".invalid", ".example")


LINKED_PREFIX = f"{order_links.PATH}/"
LINK = Actor("link", PrincipalKind.NONE, DEFAULT_TENANT, frozenset({AccessScope.LEASE_TAKE}))  # for that path alone


def check_binding(settings: Settings, has_administrator: Callable[[], bool] = lambda: False) -> None:
    """No open server beyond loopback: SettingsError unless ORACULO_API_KEY is set, and long, or the store has a key
    for an administrator, or an administrator with a password, or users come from an identity provider."""
    if is_loopback(settings.host):
        return
    if settings.api_key:
        if len(settings.api_key) < API_KEY_MIN_CHARS:
            raise SettingsError(
                "ORACULO_API_KEY",
                "***",
                f"beyond loopback (ORACULO_HOST={settings.host}) it has at least {API_KEY_MIN_CHARS} characters: "
                "openssl rand -hex 32",
            )
    elif not settings.oidc.issuer and not has_administrator():
        raise SettingsError(
            "ORACULO_HOST",
            settings.host,
            "without ORACULO_API_KEY only loopback: 127.0.0.1, ::1 or localhost; or make a first key: "
            "oraculo keys create --role admin; or a first user: oraculo users add NAME --role admin, with "
            "ORACULO_LOCAL_USERS=on; or name an identity provider: ORACULO_OIDC_ISSUER",
        )


class Auth:
    """ASGI middleware for both cases. Another site cannot send a key: the checks of origin are for the other."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        sessions: Sessions,
        judge: CredentialJudge,
        link_allows: Callable[[Scope], bool] = lambda _scope: False,
        workloads: SpiffeIdentities | None = None,
    ) -> None:
        self.app = app
        self._key = settings.api_key
        self._sessions = sessions
        self._judge = judge
        self._link_allows = link_allows
        self._workloads = workloads
        own = (settings.host, urlsplit(settings.url).hostname or "")
        self._hosts = frozenset(name.strip("[]").lower() for name in own if name)
        self._answers_for = lru_cache(HOSTS_KEPT)(self._answers_for_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there is no route of another kind; the server closes the connection
        try:
            found = await (self._by_key(scope) if self._judge.asks else self._by_origin(scope))
        except (StoreError, IdentityUnavailableError) as error:
            found = problems.problem_of(error)
        if isinstance(found, Actor):
            scope.setdefault("state", {})["actor"] = found
            await self.app(scope, receive, send)
        elif found.code == "unauthorized" and _is_page(scope):
            await to_login(scope)(scope, receive, send)
        else:
            await problems.response(found, scope["path"])(scope, receive, send)

    async def _by_key(self, scope: Scope) -> Actor | ProblemError:
        if scope["path"] == LOGIN_PATH or scope["path"].startswith(STATIC_PREFIX):
            return STRANGER
        if scope["path"] in OPEN_PATHS:
            return await self._known_or_stranger(scope)
        given = _credentials(scope)
        if not given:
            if scope["path"].startswith(LINKED_PREFIX) and self._link_allows(scope):
                return LINK
            return await self._by_session(scope) or self._by_certificate(scope) or UNAUTHORIZED
        return await self._judge.judged(given, address_of(scope))

    async def _known_or_stranger(self, scope: Scope) -> Actor:
        """Who asks for what is open, if it says so. Whatever is wrong with that keeps no probe from its answer."""
        given = _credentials(scope)
        try:
            found = await (self._judge.judged(given, address_of(scope)) if given else self._by_session(scope))
        except (StoreError, IdentityUnavailableError):
            return STRANGER
        return found if isinstance(found, Actor) else STRANGER

    async def _by_session(self, scope: Scope) -> Actor | None:
        headers = Headers(scope=scope)
        cookie = cookie_of(self._sessions, headers)
        if cookie is None:
            return None
        actor: Actor | None = None
        if is_session(cookie):
            keys = self._judge.keys()
            actor = None if keys is None else await keys.actor_of_session(cookie)
        elif self._key:  # without it, everybody could sign one
            actor = SHARED_KEY
        if actor is None or scope["method"] in SAFE_METHODS or scope["path"].startswith(FORM_PREFIX):
            return actor
        identity = identity_of(self._sessions, headers)
        token = headers.get(CSRF_HEADER, "")
        return actor if identity is not None and self._sessions.is_token(identity, token) else None

    def _by_certificate(self, scope: Scope) -> Actor | None:
        """The actor of the certificate that the connection began with. Not for browsers: they show theirs on whatever
        another site makes them send."""
        id = scope.get("state", {}).get(SPIFFE_ID)
        if self._workloads is None or id is None:
            return None
        headers = Headers(scope=scope)
        from_browser = "origin" in headers or "sec-fetch-site" in headers
        return None if from_browser else self._workloads.actor_of(id)

    async def _by_origin(self, scope: Scope) -> Actor | ProblemError:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._answers_for(host):
            return ProblemError(
                "wrong_host", f"Host {host[:100]!r}; set ORACULO_URL to the address you use, or set ORACULO_API_KEY"
            )
        found = await self._by_stored_key(scope)
        if found is not LOCAL or scope["method"] in SAFE_METHODS:
            return found
        origin = headers.get("origin")
        strange = origin is not None and origin.partition("://")[2] != host and _hostname(origin) not in self._hosts
        if strange or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return ProblemError("cross_site", f"Origin {(origin or '')[:100]!r} is not this server")
        return LOCAL

    async def _by_stored_key(self, scope: Scope) -> Actor | ProblemError:
        """No key is needed here, but one that is sent counts: a worker's may do what a worker may."""
        if scope["path"] in OPEN_PATHS:
            return LOCAL
        return await self._judge.caller(_credentials(scope), address_of(scope))

    def _answers_for_host(self, host: str) -> bool:
        """Refuse a host name that the settings do not know: it could be owned by an attacker (DNS rebinding)."""
        name = _hostname(f"//{host}")
        if name is None:
            return False
        if name in self._hosts or name == "localhost" or name.endswith(UNOWNED_SUFFIXES):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _credentials(scope: Scope) -> list[bytes]:
    """Every key that the request carries."""
    given: list[bytes] = []
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            given.append(value)
        elif name == b"authorization" and value[:7].lower() == b"bearer ":
            given.append(value[7:].strip())
    return given


def address_of(scope: Scope) -> str:
    """Where the request comes from; with a proxy that is trusted, where that got it from."""
    client = scope.get("client")
    return client[0] if client else ""


def _is_page(scope: Scope) -> bool:
    """A person with a browser: shown the way in, not a problem document."""
    return scope["method"] in SAFE_METHODS and "text/html" in Headers(scope=scope).get("accept", "")


def to_login(scope: Scope) -> RedirectResponse:
    query = scope.get("query_string", b"").decode("latin-1")
    here = scope["path"] + (f"?{query}" if query else "")
    return RedirectResponse(f"{LOGIN_PATH}?{urlencode({'next': here})}", 303)


def _hostname(url: str) -> str | None:
    """The host in a URL, empty when it has none; None when it is no URL at all."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None
