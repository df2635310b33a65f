"""Local users as rows of a table, the same in every database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.core.access import AccessRole
from oraculo.ports.users import LocalUser

USER_COLUMNS = "name, tenant, roles, password_hash, created_at, created_by, changed_at, disabled_at"
_CHANGEABLE = ("tenant", "roles", "password_hash", "changed_at", "disabled_at")


def user_row(user: LocalUser) -> tuple[Any, ...]:
    """The values of USER_COLUMNS."""
    return (
        user.name,
        user.tenant,
        orjson.dumps(user.roles).decode(),
        user.password_hash,
        to_micros(user.created_at),
        user.created_by,
        to_micros(user.changed_at),
        None if user.disabled_at is None else to_micros(user.disabled_at),
    )


def user_of(row: Sequence[Any]) -> LocalUser:
    """The user in a row of USER_COLUMNS."""
    name, tenant, roles, password_hash, created, by, changed, disabled = row
    return LocalUser(
        name,
        tenant,
        tuple(AccessRole(role) for role in orjson.loads(roles)),
        password_hash,
        from_micros(created),
        by,
        from_micros(changed),
        from_micros_or_none(disabled),
    )


def put_sql(mark: str) -> str:
    """SQL that takes a row of a user."""
    marks = ", ".join([mark] * len(USER_COLUMNS.split(",")))
    changes = ", ".join(f"{column} = excluded.{column}" for column in _CHANGEABLE)
    return f"INSERT INTO users ({USER_COLUMNS}) VALUES ({marks}) ON CONFLICT (name) DO UPDATE SET {changes}"
