"""Port: an identity provider, who says who a user is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from oraculo.core.access import Actor


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """What a browser keeps between leaving for the provider and coming back."""

    state: str
    nonce: str
    verifier: str


class IdentityProvider(Protocol):
    """IdentityUnavailableError from any of these: the provider has to be asked, and cannot be."""

    async def check(self) -> None:
        """Ask the provider for what it says of itself, and for its keys."""
        ...

    async def actor_of(self, token: str) -> Actor | None:
        """The user whose access token this is; None when it is not good."""
        ...

    async def begin(self) -> tuple[str, LoginAttempt]:
        """The address at the provider that a browser is sent to, and what it has to keep until it is back."""
        ...

    async def finish(self, attempt: LoginAttempt, state: str, code: str, issuer: str | None = None) -> Actor | None:
        """The user who came back with this code; None when something about it is not good."""
        ...
