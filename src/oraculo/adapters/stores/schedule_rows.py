"""Rows of schedules, the same in every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.stores.instants import from_micros_or_none, to_micros
from oraculo.ports.schedules import StoredSchedule

SCHEDULE_COLUMNS = "nome, body, state, due_at, version, tenant"


def schedule_row(one: StoredSchedule) -> tuple[Any, ...]:
    """name, body, state, due_at."""
    return one.name, one.body.decode(), one.state.decode(), None if one.due_at is None else to_micros(one.due_at)


def schedule_of(row: Sequence[Any]) -> StoredSchedule:
    """Of SCHEDULE_COLUMNS."""
    name, body, state, due_at, version, _ = row
    return StoredSchedule(name, body.encode(), state.encode(), from_micros_or_none(due_at), version)
