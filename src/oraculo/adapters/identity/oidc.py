"""OpenID Connect: users of a provider, by the tokens that it signs for them.

A bearer token of the API is judged here, with keys of the provider that are remembered: a request costs no call. The
dashboard uses the code flow with PKCE. A user without a role that is known here may do nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import structlog

from oraculo.adapters.identity import jws
from oraculo.adapters.identity.jws import TokenError, VerificationKey
from oraculo.core.access import USER_ROLES, AccessRole, Actor, actor_of_user, is_user_id
from oraculo.core.tenants import DEFAULT_TENANT, is_tenant
from oraculo.errors import IdentityUnavailableError, WireError
from oraculo.loopback import is_loopback
from oraculo.ports.clock import Clock
from oraculo.ports.identity import LoginAttempt
from oraculo.wire import strict_json

log = structlog.get_logger("oraculo.oidc")

CLOCK_SKEW_S = 60.0
KEYS_LIFE_S = 600.0
KEYS_PAUSE_S = 10.0  # between two calls for keys, whatever tokens name
METADATA_LIFE_S = 3600.0
HTTP_TIMEOUT_S = 5.0
ANSWER_MAX_BYTES = 1024 * 1024
KNOWN_TOKENS_MAX = 10_000
KNOWN_TOKEN_LIFE_S = 60.0
ID_TOKEN_CLAIMS = ("nonce", "at_hash", "c_hash")  # a token with one of these is for the one who logged in, not for us


@dataclass(frozen=True, slots=True)
class OidcOptions:
    """`roles` maps what the claim says to our roles; without an entry, our own words count."""

    issuer: str
    client_id: str
    client_secret: str
    audience: str
    role_claim: str
    roles: Mapping[str, AccessRole]
    redirect_uri: str
    tenant_claim: str = ""  # empty: all users are of `default`


@dataclass(slots=True)
class _Cached:
    value: Any
    until: float


class OidcProvider:
    """One provider. IdentityUnavailableError: it has to be asked, and cannot be."""

    def __init__(self, options: OidcOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._metadata: _Cached | None = None
        self._keys: _Cached | None = None
        self._keys_asked_at = float("-inf")
        self._asking = asyncio.Lock()
        self._known: dict[bytes, tuple[Actor, float]] = {}

    async def check(self) -> None:
        """Ask the provider for what it says of itself, and for its keys."""
        if not await self._keys_for(None):
            raise IdentityUnavailableError(f"{self._options.issuer} has no key that can be used here")

    # -- bearer tokens -----------------------------------------------------------------------------------------------

    async def actor_of(self, token: str) -> Actor | None:
        """The user whose access token this is; None when it is not good."""
        now = self._clock.now().timestamp()
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        try:
            claims = await self._claims(token, self._options.audience)
            if any(name in claims for name in ID_TOKEN_CLAIMS):
                raise TokenError("an ID token is no access token")
            actor = self._actor(claims, claims)
        except TokenError as error:
            log.info("token refused", reason=str(error))
            return None
        if len(self._known) >= KNOWN_TOKENS_MAX:
            self._known.clear()
        self._known[digest] = (actor, min(now + KNOWN_TOKEN_LIFE_S, claims["exp"]))
        return actor

    async def _claims(self, token: str, audience: str) -> Mapping[str, Any]:
        parsed = jws.parse(token)
        self._check_claims(parsed.claims, audience)  # costs less than a signature, and gives nothing away
        parsed.check_signature(await self._keys_for(parsed.kid))
        return parsed.claims

    def _check_claims(self, claims: Mapping[str, Any], audience: str) -> None:
        now = self._clock.now().timestamp()
        if claims.get("iss") != self._options.issuer:
            raise TokenError("another issuer")
        audiences = claims.get("aud")
        if audience not in (audiences if isinstance(audiences, list) else [audiences]):
            raise TokenError("for another audience")
        if not now < _instant(claims, "exp") + CLOCK_SKEW_S:
            raise TokenError("expired")
        for name in ("nbf", "iat"):
            if name in claims and _instant(claims, name) > now + CLOCK_SKEW_S:
                raise TokenError("not good yet")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not is_user_id(subject):
            raise TokenError("no subject that can be a user's")

    def _actor(self, claims: Mapping[str, Any], with_roles: Mapping[str, Any]) -> Actor:
        return actor_of_user(claims["sub"], self._roles(with_roles), self._tenant(claims, with_roles))

    def _tenant(self, *some: Mapping[str, Any]) -> str:
        """The tenant of the claim, which may be a path, in the first of these claims that have it."""
        if not self._options.tenant_claim:
            return DEFAULT_TENANT
        found = next(
            (said for claims in some if (said := _claim(claims, self._options.tenant_claim)) is not None), None
        )
        if not isinstance(found, str) or not is_tenant(found):
            raise TokenError(f"{self._options.tenant_claim} names no tenant")
        return found

    def _roles(self, claims: Mapping[str, Any]) -> list[AccessRole]:
        """Roles of the claim, which may be a path (`realm_access.roles`) and a text or a list."""
        found = _claim(claims, self._options.role_claim)
        words: Sequence[Any] = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
        own: Mapping[str, AccessRole] = self._options.roles or {role.value: role for role in USER_ROLES}
        return list(dict.fromkeys(own[word] for word in words if isinstance(word, str) and word in own))

    # -- the code flow -----------------------------------------------------------------------------------------------

    async def begin(self) -> tuple[str, LoginAttempt]:
        """The address at the provider that a browser is sent to, and what it has to keep until it is back."""
        attempt = LoginAttempt(*(secrets.token_urlsafe(32) for _ in range(3)))
        query = {
            "response_type": "code",
            "client_id": self._options.client_id,
            "redirect_uri": self._options.redirect_uri,
            "scope": "openid",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": jws.encoded(hashlib.sha256(attempt.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        address = (await self._provider())["authorization_endpoint"]
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}", attempt

    async def finish(self, attempt: LoginAttempt, state: str, code: str, issuer: str | None = None) -> Actor | None:
        """The user who came back with this code; None when something about it is not good."""
        try:
            if not secrets.compare_digest(state.encode(), attempt.state.encode()):
                raise TokenError("another state")
            if issuer is not None and issuer != self._options.issuer:
                raise TokenError("another issuer")
            answer = await self._exchange(code, attempt.verifier)
            claims = await self._claims(_text(answer, "id_token"), self._options.client_id)
            nonce = claims.get("nonce")
            if not isinstance(nonce, str) or not secrets.compare_digest(nonce.encode(), attempt.nonce.encode()):
                raise TokenError("another nonce")
            if claims.get("azp", self._options.client_id) != self._options.client_id:
                raise TokenError("for another party")
            with_roles = claims if self._roles(claims) else await self._access_claims(answer, claims["sub"])
            return self._actor(claims, with_roles)
        except TokenError as error:
            log.warning("login refused", reason=str(error))
            return None

    async def _access_claims(self, answer: Mapping[str, Any], subject: str) -> Mapping[str, Any]:
        """Claims of the access token that came along, for providers that put roles there only."""
        try:
            claims = await self._claims(_text(answer, "access_token"), self._options.audience)
        except TokenError:
            return {}
        return claims if claims["sub"] == subject else {}

    async def _exchange(self, code: str, verifier: str) -> Mapping[str, Any]:
        options = self._options
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": options.redirect_uri,
            "code_verifier": verifier,
        }
        login = None
        if options.client_secret:
            login = (quote(options.client_id, safe=""), quote(options.client_secret, safe=""))
        else:
            form["client_id"] = options.client_id
        status, body = await self._call("POST", (await self._provider())["token_endpoint"], form, login)
        if status >= 500:
            raise IdentityUnavailableError(f"{options.issuer} answered {status}")
        if status != 200:
            raise TokenError(f"the provider refused the code with {status}")
        return body

    # -- what the provider says of itself ----------------------------------------------------------------------------

    async def _provider(self) -> Mapping[str, str]:
        now = self._clock.now().timestamp()
        if self._metadata is not None and now < self._metadata.until:
            found: Mapping[str, str] = self._metadata.value
            return found
        issuer = self._options.issuer
        try:
            status, body = await self._call("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if status != 200 or body.get("issuer") != issuer:
                raise IdentityUnavailableError(f"{issuer} does not say that it is that issuer ({status})")
            wanted = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            found = {name: self._endpoint(body, name) for name in wanted}
        except IdentityUnavailableError:
            if self._metadata is None:
                raise
            found = self._metadata.value
        self._metadata = _Cached(found, now + METADATA_LIFE_S)
        return found

    def _endpoint(self, metadata: Mapping[str, Any], name: str) -> str:
        address = metadata.get(name)
        parts = urlsplit(address) if isinstance(address, str) else None
        if parts is None or not (
            parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        ):
            raise IdentityUnavailableError(f"{self._options.issuer} has no {name} over https")
        return str(address)

    async def _keys_for(self, kid: str | None) -> list[VerificationKey]:
        """The keys of the provider; asked for anew when they are old, or when none of them has that name."""
        async with self._asking:
            now = self._clock.now().timestamp()
            known: list[VerificationKey] = [] if self._keys is None else self._keys.value
            fresh = self._keys is not None and now < self._keys.until
            if fresh and (kid is None or any(one.kid == kid for one in known)):
                return known
            if now - self._keys_asked_at < KEYS_PAUSE_S and self._keys is not None:
                return known
            self._keys_asked_at = now
            try:
                status, body = await self._call("GET", (await self._provider())["jwks_uri"])
                if status != 200:
                    raise IdentityUnavailableError(f"{self._options.issuer} has no keys ({status})")
            except IdentityUnavailableError as error:
                if self._keys is None:
                    raise
                log.warning("keys of the provider not renewed", error=str(error))
                return known
            keys = jws.keys_of(body)
            self._keys = _Cached(keys, now + KEYS_LIFE_S)
            return keys

    async def _call(
        self, method: str, url: str, form: Mapping[str, str] | None = None, login: tuple[str, str] | None = None
    ) -> tuple[int, Mapping[str, Any]]:
        """Status and JSON object of an answer."""
        local = is_loopback(urlsplit(url).hostname or "")
        headers = {"Accept": "application/json"}
        try:
            async with (
                httpx2.AsyncClient(timeout=HTTP_TIMEOUT_S, trust_env=not local, auth=login, headers=headers) as client,
                client.stream(method, url, data=form) as answer,
            ):
                content = b""
                async for part in answer.aiter_bytes():
                    content += part
                    if len(content) > ANSWER_MAX_BYTES:
                        raise IdentityUnavailableError(f"{url} answered with more than {ANSWER_MAX_BYTES} bytes")
                status = answer.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise IdentityUnavailableError(f"{url}: {str(error) or type(error).__name__}") from None
        try:
            body = strict_json.loads(content)
        except WireError:
            body = {}
        return status, body if isinstance(body, dict) else {}


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """What a claim says; a name with dots that is none itself leads into objects."""
    found: Any = claims
    for step in [name] if name in claims else name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _instant(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise TokenError(f"{name} is no instant")
    return float(value)


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise TokenError(f"the provider gave no {name}")
    return value
