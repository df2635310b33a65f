"""Port: people who log in at the dashboard with a password. Of passwords only slow hashes are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from oraculo.core.access import AccessRole, Actor, actor_of_local_user


@dataclass(frozen=True, slots=True)
class LocalUser:
    """One person. With `disabled_at` the user is known and not let in."""

    name: str
    tenant: str
    roles: tuple[AccessRole, ...]
    password_hash: str = field(repr=False)
    created_at: datetime
    created_by: str
    changed_at: datetime
    disabled_at: datetime | None = None

    @property
    def actor(self) -> Actor:
        return actor_of_local_user(self.name, self.roles, self.tenant)


class LocalUsers(Protocol):
    async def user(self, name: str) -> LocalUser | None:
        """Return the user of that name, a disabled one too."""
        ...

    async def users(self) -> list[LocalUser]:
        """List every user, by name."""
        ...

    async def open_sessions(self, now: datetime, limit: int) -> list[tuple[str, datetime]]:
        """List sessions of browsers that are not over as (whose, until when), the newest first. Whose: the id of a key,
        or as `runtime.user_sessions` and `runtime.local_users` name people."""
        ...

    async def put_user(self, user: LocalUser, *, ends_sessions_of: str | None = None) -> None:
        """Store a user, in the place of one of that name. In the same transaction end the sessions that belong to
        `ends_sessions_of`."""
        ...

    async def remove_user(self, name: str, ends_sessions_of: str) -> bool:
        """Forget a user and end those sessions; return whether the user was known."""
        ...


class PasswordHasher(Protocol):
    """A slow hash of passwords. Both calls block, for about a tenth of a second."""

    def hash(self, password: str) -> str: ...

    def verify(self, password_hash: str, password: str) -> bool:
        """Return whether it is the password of this hash. Never raises."""
        ...
