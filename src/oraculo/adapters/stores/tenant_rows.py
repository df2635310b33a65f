"""Rows of tenants, the same in every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.core.access import Limits
from oraculo.core.vocabulary import RUN_STATUSES
from oraculo.ports.tenants import StoredTenant

_LIMIT_COLUMNS = ("max_open", "max_per_s", "max_dead_letters", "max_bytes_per_s", "max_streams")
TENANT_COLUMNS = ", ".join(("name", "created_at", *_LIMIT_COLUMNS))
OPEN_STATUSES = tuple(status.value for status in RUN_STATUSES if not status.final)


def tenant_row(one: StoredTenant) -> tuple[Any, ...]:
    """The columns of TENANT_COLUMNS."""
    limits = one.limits
    numbers = (limits.open, limits.per_second, limits.dead_letters, limits.bytes_per_second, limits.streams)
    return one.name, to_micros(one.created_at), *numbers


def tenant_of_row(row: Sequence[Any]) -> StoredTenant:
    """Of TENANT_COLUMNS."""
    name, created, *limits = row
    return StoredTenant(name, from_micros(created), Limits(*limits))


def put_sql(mark: str) -> str:
    """SQL that takes a row of a tenant."""
    marks = ", ".join([mark] * (2 + len(_LIMIT_COLUMNS)))
    limits = ", ".join(f"{column} = excluded.{column}" for column in _LIMIT_COLUMNS)
    return f"INSERT INTO tenants ({TENANT_COLUMNS}) VALUES ({marks}) ON CONFLICT (name) DO UPDATE SET {limits}"


def dead_letters_sql(mark: str) -> str:
    """SQL for how many dead letters of a tenant are kept; takes the tenant and a limit."""
    return f"SELECT count(*) FROM (SELECT 1 FROM dead_letters WHERE tenant = {mark} LIMIT {mark}) AS found"


def open_sql(mark: str) -> str:
    """SQL for how many runs of a tenant are open; takes the tenant, OPEN_STATUSES and a limit."""
    statuses = ", ".join([mark] * len(OPEN_STATUSES))
    return (
        f"SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant = {mark} AND status IN ({statuses}) LIMIT {mark})"
        " AS found"
    )
