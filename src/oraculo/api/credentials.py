"""Credentials that callers send: keys and tokens, judged in one way, whatever protocol they came by."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from oraculo.api.guessing import GuessLimiter
from oraculo.api.problems import ProblemError
from oraculo.core.access import LOCAL, SHARED_KEY, Actor
from oraculo.loopback import is_loopback
from oraculo.ports.identity import IdentityProvider
from oraculo.runtime.api_keys import KeyRing, is_key
from oraculo.settings.settings import Settings

API_KEY_MIN_CHARS = 32  # beyond loopback; one of this length cannot be guessed
UNAUTHORIZED = ProblemError(
    "unauthorized",
    "send Authorization: Bearer KEY or X-API-Key: KEY",
    headers={"WWW-Authenticate": 'Bearer realm="oraculo"'},
)


def asks_for_key(settings: Settings) -> bool:
    """True if every caller needs a credential."""
    named = settings.api_key or settings.oidc.issuer or settings.local_users or settings.tls.spiffe
    return bool(named) or not is_loopback(settings.host)


class CredentialJudge:
    """Says whose a credential is. `keys` gives the keys of the store, which is open by the time of the first call."""

    def __init__(
        self,
        settings: Settings,
        keys: Callable[[], KeyRing | None],
        guesses: GuessLimiter,
        users: IdentityProvider | None = None,
    ) -> None:
        self.asks = asks_for_key(settings)
        self.keys = keys
        self._key = settings.api_key.encode()
        self._guesses = guesses
        self._users = users

    async def caller(self, given: list[bytes], address: str) -> Actor | ProblemError:
        """The actor of a call that is no browser's. Where no key is needed one that is sent counts all the same: a
        worker's may do what a worker may."""
        if not self.asks:
            given = [credential for credential in given if is_key(credential.decode("latin-1"))]
            return await self.judged(given, address) if given else LOCAL
        return await self.judged(given, address) if given else UNAUTHORIZED

    async def judged(self, given: list[bytes], address: str) -> Actor | ProblemError:
        """The actor of the credentials that were sent. A key that could be guessed is refused to an address that gave
        too many wrong ones; one that could not be is let through, so that no address can lock others out."""
        refusal = self._guesses.refusal(address)
        if self._key and any([hmac.compare_digest(key, self._key) for key in given]):
            return SHARED_KEY if refusal is None or len(self._key) >= API_KEY_MIN_CHARS else refusal
        keys = self.keys()
        for credential in given:
            actor = None if keys is None else await keys.actor_of(credential.decode("latin-1"))
            if actor is not None:
                return actor
        tokens = [credential for credential in given if credential.count(b".") == 2] if self._users is not None else []
        for token in tokens:
            actor = None if self._users is None else await self._users.actor_of(token.decode("latin-1"))
            if actor is not None:
                return actor
        if tokens and len(tokens) == len(given):
            return UNAUTHORIZED  # a signature is not guessed, and tokens expire in good hands
        self._guesses.failed(address)
        return refusal or UNAUTHORIZED
