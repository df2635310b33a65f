"""Port: keys of the API and the sessions that browsers began with them. Of secrets only digests are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from oraculo.core.access import NO_LIMITS, AccessRole, Actor, Limits, actor_of_key


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key. After a rotation the digest of the secret before it is good until `old_until`."""

    id: str
    role: AccessRole
    tenant: str
    queues: tuple[str, ...]
    note: str
    created_at: datetime
    created_by: str
    digest: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
    old_digest: str | None = None
    old_until: datetime | None = None
    limits: Limits = NO_LIMITS
    public_key: str | None = None  # of the pair that its owner signs messages with, base64url

    @property
    def actor(self) -> Actor:
        return actor_of_key(self.id, self.role, self.tenant, self.queues, self.limits)

    def is_live(self, now: datetime) -> bool:
        """True unless it was revoked or has expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class KeySession:
    """The session of one browser whose user gave a key; it ends with the key, too. Of a user whom an identity provider
    knows, `key_id` is who that is (`runtime.user_sessions`)."""

    id: str
    key_id: str
    digest: str
    expires_at: datetime


class ApiKeys(Protocol):
    async def add_api_key(self, key: ApiKey) -> None:
        """Store a new key."""
        ...

    async def api_key(self, id: str) -> ApiKey | None:
        """Return the key of that id, revoked and expired ones too."""
        ...

    async def api_keys(self) -> list[ApiKey]:
        """List every key, newest first."""
        ...

    async def rotate_api_key(self, id: str, digest: str, old_until: datetime, expires_at: datetime | None) -> bool:
        """Replace the secret of a key that is not revoked, and say until when the key is good. The secret before is
        good until `old_until`. Return whether the key was there."""
        ...

    async def revoke_api_key(self, id: str, at: datetime) -> bool:
        """Revoke a key and end its sessions; return whether it was there and not revoked yet."""
        ...

    async def open_runs_of(self, key_id: str) -> int:
        """Count the orchestrations that this key asked for and that have not ended."""
        ...

    async def use_api_key(self, id: str, at: datetime) -> None:
        """Record when a key was used last."""
        ...

    async def add_session(self, session: KeySession, now: datetime) -> None:
        """Store a session, and forget those that are over by `now`."""
        ...

    async def session(self, id: str) -> KeySession | None:
        """Return the session of that id, one that is over too."""
        ...

    async def end_session(self, id: str) -> bool:
        """Forget a session; return whether it was there."""
        ...
