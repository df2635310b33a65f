"""Rows of tenants, the same in every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.core.access import Limits
from oraculo.core.vocabulary import RUN_STATUSES
from oraculo.ports.tenants import StoredTenant

TENANT_COLUMNS = "name, created_at, max_open, max_per_s"
OPEN_STATUSES = tuple(status.value for status in RUN_STATUSES if not status.final)


def tenant_row(one: StoredTenant) -> tuple[Any, ...]:
    """The columns of TENANT_COLUMNS."""
    return one.name, to_micros(one.created_at), one.limits.open, one.limits.per_second


def tenant_of_row(row: Sequence[Any]) -> StoredTenant:
    """Of TENANT_COLUMNS."""
    name, created, most, rate = row
    return StoredTenant(name, from_micros(created), Limits(most, rate))


def put_sql(mark: str) -> str:
    """SQL that takes a row of a tenant."""
    return (
        f"INSERT INTO tenants ({TENANT_COLUMNS}) VALUES ({mark}, {mark}, {mark}, {mark})"
        " ON CONFLICT (name) DO UPDATE SET max_open = excluded.max_open, max_per_s = excluded.max_per_s"
    )


def open_sql(mark: str) -> str:
    """SQL for how many runs of a tenant are open; takes the tenant, OPEN_STATUSES and a limit."""
    statuses = ", ".join([mark] * len(OPEN_STATUSES))
    return (
        f"SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant = {mark} AND status IN ({statuses}) LIMIT {mark})"
        " AS found"
    )
