"""Keys of the API: made, checked, replaced and revoked.

A key is `orc_<id>_<secret>`. The secret has 256 random bits, so a plain SHA-256 of it cannot be guessed back, and it is
all that is stored; the key itself is shown once, to its maker. A look-up is remembered for CACHE_LIFE: that is how long
a revocation made by another process may take to be noticed. While the database is away, what was known stays good.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from oraculo.core.access import NO_LIMITS, AccessRole, Actor, Limits
from oraculo.core.tenants import DEFAULT_TENANT, TENANT_PATTERN, is_tenant, queue_in
from oraculo.errors import StoreError, UnknownIdError, WireError
from oraculo.ports.api_keys import ApiKey, ApiKeys, KeySession
from oraculo.ports.clock import Clock
from oraculo.ports.system_events import SystemEvent, SystemEventLog
from oraculo.ports.tenants import TenantRegistry
from oraculo.runtime.local_users import UserDirectory, session_owner, user_of_owner
from oraculo.runtime.user_sessions import text_of_user, user_of_text
from oraculo.wire import names
from oraculo.wire.signatures import KEY_BYTES, decoded

log = structlog.get_logger("oraculo.keys")

CACHE_LIFE = timedelta(seconds=5)
CACHE_MAX_KEYS = 10_000
USE_RECORDED_EVERY = timedelta(minutes=1)
SESSION_LIFE = timedelta(hours=12)
OVERLAP = timedelta(days=1)
OVERLAP_MAX = timedelta(days=30)
LIFE_MIN, LIFE_MAX = timedelta(minutes=1), timedelta(days=3660)
NOTE_MAX_CHARS = 200
QUEUES_MAX = 100
OPEN_MAX = 100_000_000
PER_SECOND_MIN, PER_SECOND_MAX = 0.001, 1_000_000.0
BYTES_PER_SECOND_MAX = 1e12

_ID_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH: Final = 11  # letters after the first
_KEY = re.compile(r"orc_(k[a-z2-7]{11})_([A-Za-z0-9_-]{43})", re.ASCII)
_SESSION = re.compile(r"orcs_(s[a-z2-7]{11})_([A-Za-z0-9_-]{43})", re.ASCII)
_NO_DIGEST = "0" * 64


class KeyStore(ApiKeys, TenantRegistry, SystemEventLog, Protocol):
    """What a key ring needs of a store."""


@dataclass(slots=True)
class _Known:
    """What the last look-up of an id found."""

    key: ApiKey | None
    actor: Actor | None
    at: datetime


@dataclass(slots=True)
class _KnownSession:
    session: KeySession | None
    at: datetime


def is_key(credential: str) -> bool:
    """True if this has the form of a stored key."""
    return _KEY.fullmatch(credential) is not None


def is_session(cookie: str) -> bool:
    """True if this has the form of a session that was begun with a stored key."""
    return _SESSION.fullmatch(cookie) is not None


class KeyRing:
    """The keys of one store. All processes on it see the same ones. `users` are those whose sessions are good, too."""

    def __init__(self, store: KeyStore, clock: Clock, users: UserDirectory | None = None) -> None:
        self._store = store
        self._users = users
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._sessions: dict[str, _KnownSession] = {}

    # -- who is it ---------------------------------------------------------------------------------------------------

    async def actor_of(self, credential: str) -> Actor | None:
        """The actor whose key this is; None when it is no key, or one that is not good (any more)."""
        found = _KEY.fullmatch(credential)
        if found is None:
            return None
        id, secret = found.groups()
        now = self._clock.now()
        known = await self._look_up(id, now)
        key = known.key
        matches = _matches(secret, key, now)
        if key is None or not matches or not key.is_live(now):
            return None
        if key.used_at is None or now - key.used_at >= USE_RECORDED_EVERY:
            await self._record_use(known, key, now)
        return known.actor

    async def _look_up(self, id: str, now: datetime) -> _Known:
        known = self._known.get(id)
        if known is not None and now - known.at < CACHE_LIFE:
            return known
        if known is not None:
            known.at = now  # others go by it while it is looked up again
        try:
            key = await self._store.api_key(id)
        except StoreError:
            if known is None:
                raise
            log.warning("key not looked up again: store unavailable", key=id)
            return known
        if len(self._known) >= CACHE_MAX_KEYS:
            self._known.clear()
        fresh = self._known[id] = _Known(key, None if key is None else key.actor, now)
        return fresh

    async def _record_use(self, known: _Known, key: ApiKey, now: datetime) -> None:
        known.key = replace(key, used_at=now)
        try:
            await self._store.use_api_key(key.id, now)
        except StoreError as error:
            log.warning("use of a key not recorded", key=key.id, error=str(error))

    # -- sessions of browsers ----------------------------------------------------------------------------------------

    async def begin_session(self, credential: str) -> str | None:
        """Begin a session with a key and return the value of its cookie; None when the key is not good."""
        actor = await self.actor_of(credential)
        return None if actor is None else await self._begin_session(actor.id)

    async def begin_user_session(self, user: Actor) -> str:
        """Begin a session for a user whom an identity provider has just named; return the value of its cookie."""
        return await self._begin_session(text_of_user(user))

    async def begin_local_session(self, name: str) -> str:
        """Begin a session for a local user whose password was right; return the value of its cookie."""
        return await self._begin_session(session_owner(name))

    async def _begin_session(self, of: str) -> str:
        id, secret, now = _new_id("s"), secrets.token_urlsafe(32), self._clock.now()
        await self._store.add_session(KeySession(id, of, _digest(secret), now + SESSION_LIFE), now)
        return f"orcs_{id}_{secret}"

    async def actor_of_session(self, cookie: str) -> Actor | None:
        """The actor whose session this is; None when it is over, or its key is not good any more."""
        found = _SESSION.fullmatch(cookie)
        if found is None:
            return None
        id, secret = found.groups()
        now = self._clock.now()
        session = await self._look_up_session(id, now)
        good = hmac.compare_digest(_digest(secret), _NO_DIGEST if session is None else session.digest)
        if session is None or not good or session.expires_at <= now:
            return None
        name = user_of_owner(session.key_id)
        if name is not None:
            return None if self._users is None else await self._users.actor_of(name)
        user = user_of_text(session.key_id)
        if user is not None:
            return user
        known = await self._look_up(session.key_id, now)
        return known.actor if known.key is not None and known.key.is_live(now) else None

    async def _look_up_session(self, id: str, now: datetime) -> KeySession | None:
        known = self._sessions.get(id)
        if known is not None and now - known.at < CACHE_LIFE:
            return known.session
        session = await self._store.session(id)
        if len(self._sessions) >= CACHE_MAX_KEYS:
            self._sessions.clear()
        self._sessions[id] = _KnownSession(session, now)
        return session

    async def end_session(self, cookie: str) -> None:
        """End a session; what is none is passed over."""
        found = _SESSION.fullmatch(cookie)
        if found is not None and await self.actor_of_session(cookie) is not None:
            self._sessions.pop(found[1], None)
            await self._store.end_session(found[1])

    # -- administration ----------------------------------------------------------------------------------------------

    async def create(
        self,
        role: AccessRole,
        *,
        by: Actor,
        tenant: str = DEFAULT_TENANT,
        queues: Sequence[str] = (),
        life: timedelta | None = None,
        note: str = "",
        limits: Limits = NO_LIMITS,
        public_key: str | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key; return it with its text, which is stored nowhere. `public_key` is that of the pair that its owner
        signs messages with. WireError: what was asked for cannot be."""
        _check_tenant(tenant, queues, by)
        _check(role, queues, life, note)
        check_limits(limits)
        _check_public_key(public_key)
        now, secret = self._clock.now(), secrets.token_urlsafe(32)
        key = ApiKey(
            _new_id("k"),
            role,
            tenant,
            tuple(dict.fromkeys(queues)),
            note,
            now,
            by.id,
            _digest(secret),
            None if life is None else now + life,
            limits=limits,
            public_key=public_key,
        )
        if tenant != DEFAULT_TENANT:
            await self._store.add_tenant(tenant, now)
        await self._store.add_api_key(key)
        await self._record("key_created", key, by)
        return key, _text(key.id, secret)

    async def rotate(
        self, id: str, *, by: Actor, overlap: timedelta = OVERLAP, life: timedelta | None = None
    ) -> tuple[ApiKey, str]:
        """Give a key a new secret; the one before is good for `overlap` more. `life` sets anew how long it lasts."""
        if not timedelta() <= overlap <= OVERLAP_MAX:
            raise _refused("overlap_s", f"from 0 to {OVERLAP_MAX.days} days are allowed")
        _check_life(life)
        now, secret = self._clock.now(), secrets.token_urlsafe(32)
        key = await self._existing(id, by)
        expires_at = key.expires_at if life is None else now + life
        if expires_at is not None and expires_at <= now:
            raise _refused("expires_s", f"the key {id} has expired; say how long it shall last")
        if not await self._store.rotate_api_key(id, _digest(secret), now + overlap, expires_at):
            raise UnknownIdError("key", id)
        self._known.pop(id, None)
        await self._record("key_rotated", key, by)
        return await self._existing(id, by), _text(id, secret)

    async def revoke(self, id: str, *, by: Actor) -> ApiKey:
        """Make a key useless, and end its sessions. One that was revoked before stays as it was."""
        key = await self._existing(id, by, revoked=True)
        if await self._store.revoke_api_key(id, self._clock.now()):
            await self._record("key_revoked", key, by)
        self._known.pop(id, None)
        self._sessions.clear()
        return await self._existing(id, by, revoked=True)

    def now(self) -> datetime:
        """The time that keys are judged by."""
        return self._clock.now()

    async def all(self, tenant: str | None = None) -> list[ApiKey]:
        """Return every key, of one tenant or of all, newest first."""
        return [key for key in await self._store.api_keys() if tenant in (None, key.tenant)]

    async def has_administrator(self) -> bool:
        """True if some key that is good administers the installation."""
        now = self._clock.now()
        return any(key.role is AccessRole.ADMIN and key.is_live(now) for key in await self.all(DEFAULT_TENANT))

    async def _existing(self, id: str, by: Actor, *, revoked: bool = False) -> ApiKey:
        key = await self._store.api_key(id)
        if key is None or not by.administers(key.tenant) or (key.revoked_at is not None and not revoked):
            raise UnknownIdError("key", id)
        return key

    async def _record(self, kind: str, key: ApiKey, by: Actor) -> None:
        body = {"chave": key.id, "role": key.role.value, "tenant": key.tenant, "nota": key.note, "ator": by.id}
        await self._store.record_system_event(SystemEvent(kind, self._clock.now(), body, tenant=key.tenant))


def _matches(secret: str, key: ApiKey | None, now: datetime) -> bool:
    """Compare with both secrets that may be good, in constant time, with nothing too."""
    given = _digest(secret)
    current = hmac.compare_digest(given, _NO_DIGEST if key is None else key.digest)
    old = hmac.compare_digest(given, _NO_DIGEST if key is None or key.old_digest is None else key.old_digest)
    return current or (old and key is not None and key.old_until is not None and now < key.old_until)


def _check_tenant(tenant: str, queues: Sequence[str], by: Actor) -> None:
    if not is_tenant(tenant):
        raise _refused("tenant", f"{tenant[:40]!r} does not match {TENANT_PATTERN}")
    if not by.administers(tenant):
        raise _refused("tenant", f"this key makes keys of the tenant {by.home!r} only")
    for queue in queues:
        if queue_in(tenant, queue) is None:
            raise _refused("queues", f"{queue[:40]!r} belongs to another tenant than {tenant!r}")


def _check(role: AccessRole, queues: Sequence[str], life: timedelta | None, note: str) -> None:
    if role is AccessRole.TRABALHADOR and not queues:
        raise _refused("queues", f"a key with the role {role} names the queues that it may lease from")
    if role is not AccessRole.TRABALHADOR and queues:
        raise _refused("queues", f"only keys with the role {AccessRole.TRABALHADOR} have queues, not {role}")
    if len(queues) > QUEUES_MAX:
        raise _refused("queues", f"at most {QUEUES_MAX} are allowed")
    for queue in queues:
        if not names.is_queue_name(queue):
            raise _refused("queues", f"{queue[:40]!r} does not match {names.QUEUE_PATTERN}")
    if len(note) > NOTE_MAX_CHARS or not note.isprintable():
        raise _refused("nota", f"at most {NOTE_MAX_CHARS} printable characters are allowed")
    _check_life(life)


def _check_public_key(text: str | None) -> None:
    if text is not None and len(decoded(text) or b"") != KEY_BYTES:
        raise _refused("public_key", "the 32 bytes of an Ed25519 public key in base64url, without padding, are allowed")


def check_limits(limits: Limits) -> None:
    """Raise WireError unless a key or a tenant may have these limits."""
    if limits.open is not None and not 1 <= limits.open <= OPEN_MAX:
        raise _refused("limites.abertas", f"from 1 to {OPEN_MAX} are allowed")
    if limits.per_second is not None and not PER_SECOND_MIN <= limits.per_second <= PER_SECOND_MAX:
        raise _refused("limites.por_segundo", f"from {PER_SECOND_MIN:g} to {PER_SECOND_MAX:g} are allowed")

    if limits.dead_letters is not None and not 1 <= limits.dead_letters <= OPEN_MAX:
        raise _refused("limites.mensagens_mortas", f"from 1 to {OPEN_MAX} are allowed")
    if limits.streams is not None and not 1 <= limits.streams <= OPEN_MAX:
        raise _refused("limites.transmissoes", f"from 1 to {OPEN_MAX} are allowed")
    if limits.bytes_per_second is not None and not 1 <= limits.bytes_per_second <= BYTES_PER_SECOND_MAX:
        raise _refused("limites.bytes_por_segundo", f"from 1 to {BYTES_PER_SECOND_MAX:g} are allowed")


def _check_life(life: timedelta | None) -> None:
    if life is not None and not LIFE_MIN <= life <= LIFE_MAX:
        raise _refused("expires_s", f"from {LIFE_MIN.seconds} seconds to {LIFE_MAX.days} days are allowed")


def _refused(field: str, detail: str) -> WireError:
    return WireError("invalid_request", f"{field}: {detail}", [{"campo": field, "mensagem": detail}])


def _new_id(first: str) -> str:
    return first + "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _text(id: str, secret: str) -> str:
    return f"orc_{id}_{secret}"
