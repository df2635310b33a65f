"""Keys and sessions as rows of a table, the same in every database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.core.access import AccessRole, Limits
from oraculo.ports.api_keys import ApiKey, KeySession

KEY_COLUMNS = (
    "id, role, tenant, queues, note, created_at, created_by, digest, expires_at, revoked_at, used_at, old_digest,"
    " old_until, max_open, max_per_s, public_key"
)
SESSION_COLUMNS = "id, key_id, digest, expires_at"


def key_row(key: ApiKey) -> tuple[Any, ...]:
    """The values of KEY_COLUMNS."""
    instants = (key.expires_at, key.revoked_at, key.used_at)
    return (
        key.id,
        key.role.value,
        key.tenant,
        orjson.dumps(key.queues).decode(),
        key.note,
        to_micros(key.created_at),
        key.created_by,
        key.digest,
        *(None if at is None else to_micros(at) for at in instants),
        key.old_digest,
        None if key.old_until is None else to_micros(key.old_until),
        key.limits.open,
        key.limits.per_second,
        key.public_key,
    )


def key_of(row: Sequence[Any]) -> ApiKey:
    """The key in a row of KEY_COLUMNS."""
    id, role, tenant, queues, note, created, by, digest, expires, revoked, used, old, until, most, rate, public = row
    return ApiKey(
        id,
        AccessRole(role),
        tenant,
        tuple(orjson.loads(queues)),
        note,
        from_micros(created),
        by,
        digest,
        from_micros_or_none(expires),
        from_micros_or_none(revoked),
        from_micros_or_none(used),
        old,
        from_micros_or_none(until),
        Limits(most, rate),
        public,
    )


def session_row(session: KeySession) -> tuple[Any, ...]:
    """The values of SESSION_COLUMNS."""
    return (session.id, session.key_id, session.digest, to_micros(session.expires_at))


def session_of(row: Sequence[Any]) -> KeySession:
    """The session in a row of SESSION_COLUMNS."""
    id, key_id, digest, expires = row
    return KeySession(id, key_id, digest, from_micros(expires))
