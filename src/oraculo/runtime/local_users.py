"""People with a password: made, checked, changed, disabled and forgotten.

A password is checked at a login and nowhere else; a login begins a session of the store. What a user may do
is looked up again every few seconds, so a change counts for sessions that are open, and the sessions of a user who is
disabled, forgotten or has a new password end.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from oraculo.core.access import USER_ROLES, AccessRole, Actor
from oraculo.core.tenants import DEFAULT_TENANT, TENANT_PATTERN, is_tenant
from oraculo.errors import StoreError, UnknownIdError, WireError
from oraculo.ports.clock import Clock
from oraculo.ports.system_events import SystemEvent, SystemEventLog
from oraculo.ports.tenants import TenantRegistry
from oraculo.ports.users import LocalUser, LocalUsers, PasswordHasher

log = structlog.get_logger("oraculo.users")

CACHE_LIFE = timedelta(seconds=5)
CACHE_MAX_USERS = 10_000
PASSWORD_MIN_CHARS, PASSWORD_MAX_CHARS = 12, 1024
CHECKS_AT_ONCE = 2  # each takes 64 MiB and a core for a tenth of a second
CHECKS_WAITING_MAX = 32
NAME_PATTERN: Final = r"[a-z0-9][a-z0-9._@-]{0,63}"
_NAME = re.compile(NAME_PATTERN, re.ASCII)
_OWNER: Final = "local-user:"


def session_owner(name: str) -> str:
    """Who sessions of a user belong to, where the id of a key stands."""
    return _OWNER + name


def user_of_owner(owner: str) -> str | None:
    """The name of the user that a session belongs to; None when it belongs to no local user."""
    return owner.removeprefix(_OWNER) if owner.startswith(_OWNER) else None


class UserStore(LocalUsers, TenantRegistry, SystemEventLog, Protocol):
    """What the directory needs of a store."""


@dataclass(slots=True)
class _Known:
    actor: Actor | None
    at: datetime


class UserDirectory:
    """The users of one store. `hasher` is None where no password is made or checked."""

    def __init__(self, store: UserStore, clock: Clock, hasher: PasswordHasher | None = None) -> None:
        self._store = store
        self._clock = clock
        self._hasher = hasher
        self._known: dict[str, _Known] = {}
        self._checks = asyncio.Semaphore(CHECKS_AT_ONCE)
        self._waiting = 0
        self._decoy: str | None = None

    # -- who is it ---------------------------------------------------------------------------------------------------

    async def actor_of(self, name: str) -> Actor | None:
        """The actor that a session of this user stands for; None when the user is not let in any more."""
        now, known = self._clock.now(), self._known.get(name)
        if known is not None and now - known.at < CACHE_LIFE:
            return known.actor
        try:
            user = await self._store.user(name)
        except StoreError:
            if known is None:
                raise
            log.warning("user not looked up again: store unavailable", user=name)
            return known.actor
        if len(self._known) >= CACHE_MAX_USERS:
            self._known.clear()
        actor = None if user is None or user.disabled_at is not None else user.actor
        self._known[name] = _Known(actor, now)
        return actor

    async def check(self, name: str, password: str) -> Actor | None:
        """The user whose password this is; None when there is none, after the same time. StoreError when too many wait
        already."""
        if self._waiting >= CHECKS_WAITING_MAX:
            raise StoreError("too many logins are being checked; try again")
        user = await self._store.user(name) if _NAME.fullmatch(name) else None
        self._waiting += 1
        try:
            async with self._checks:
                right = await asyncio.to_thread(self._verify, user, password[: PASSWORD_MAX_CHARS + 1])
        finally:
            self._waiting -= 1
        if user is None or not right or user.disabled_at is not None:
            return None
        self._known.pop(name, None)
        return user.actor

    def _verify(self, user: LocalUser | None, password: str) -> bool:
        assert self._hasher is not None
        if user is None and self._decoy is None:
            self._decoy = self._hasher.hash("a user who is not there")
        return self._hasher.verify(self._decoy or "" if user is None else user.password_hash, password)

    # -- administration ----------------------------------------------------------------------------------------------

    async def add(
        self, name: str, password: str, roles: Sequence[AccessRole], *, by: Actor, tenant: str = DEFAULT_TENANT
    ) -> LocalUser:
        """Make a user. WireError: what was asked for cannot be."""
        if _NAME.fullmatch(name) is None:
            raise _refused("name", f"{name[:70]!r} does not match {NAME_PATTERN}")
        if not roles or any(role not in USER_ROLES for role in roles):
            raise _refused("role", f"at least one is needed, of {', '.join(USER_ROLES)}; workers have keys")
        if not is_tenant(tenant):
            raise _refused("tenant", f"{tenant[:40]!r} does not match {TENANT_PATTERN}")
        if await self._store.user(name) is not None:
            raise _refused("name", f"there is a user {name}")
        now = self._clock.now()
        user = LocalUser(name, tenant, tuple(dict.fromkeys(roles)), await self._hashed(password), now, by.id, now)
        if tenant != DEFAULT_TENANT:
            await self._store.add_tenant(tenant, now)
        await self._store.put_user(user)
        await self._record("user_created", user, by)
        return user

    async def set_password(self, name: str, password: str, *, by: Actor) -> LocalUser:
        """Give a user another password; the sessions of the user end."""
        hashed = await self._hashed(password)
        return await self._change("user_password_changed", name, by, password_hash=hashed)

    async def disable(self, name: str, *, by: Actor) -> LocalUser:
        """Let a user in no more, and end the sessions of the user."""
        return await self._change("user_disabled", name, by, disabled_at=self._clock.now())

    async def enable(self, name: str, *, by: Actor) -> LocalUser:
        """Let a user in again."""
        return await self._change("user_enabled", name, by, disabled_at=None)

    async def remove(self, name: str, *, by: Actor) -> None:
        """Forget a user; what the user did stays."""
        user = await self._existing(name)
        await self._store.remove_user(name, session_owner(name))
        self._known.pop(name, None)
        await self._record("user_removed", user, by)

    async def all(self) -> list[LocalUser]:
        """Return every user, by name."""
        return await self._store.users()

    async def has_administrator(self) -> bool:
        """True if some user who is let in administers the installation."""
        return any(
            user.disabled_at is None and user.tenant == DEFAULT_TENANT and AccessRole.ADMIN in user.roles
            for user in await self.all()
        )

    async def _hashed(self, password: str) -> str:
        if not PASSWORD_MIN_CHARS <= len(password) <= PASSWORD_MAX_CHARS:
            allowed = f"from {PASSWORD_MIN_CHARS} to {PASSWORD_MAX_CHARS} characters are allowed"
            raise _refused("password", allowed)
        assert self._hasher is not None
        return await asyncio.to_thread(self._hasher.hash, password)

    async def _change(self, kind: str, name: str, by: Actor, **changes: object) -> LocalUser:
        user = replace(await self._existing(name), changed_at=self._clock.now(), **changes)  # type: ignore[arg-type]
        await self._store.put_user(user, ends_sessions_of=session_owner(name))
        self._known.pop(name, None)
        await self._record(kind, user, by)
        return user

    async def _existing(self, name: str) -> LocalUser:
        user = await self._store.user(name)
        if user is None:
            raise UnknownIdError("user", name)
        return user

    async def _record(self, kind: str, user: LocalUser, by: Actor) -> None:
        body = {"usuario": user.name, "roles": list(user.roles), "tenant": user.tenant, "ator": by.id}
        await self._store.record_system_event(SystemEvent(kind, self._clock.now(), body, tenant=user.tenant))


def _refused(field: str, detail: str) -> WireError:
    return WireError("invalid_request", f"{field}: {detail}", [{"campo": field, "mensagem": detail}])
