"""Rows of schedules, the same in every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.instants import from_micros_or_none, to_micros
from oraculo.adapters.stores.sealed_rows import schedule_parts, schedule_texts
from oraculo.ports.schedules import StoredSchedule

SCHEDULE_COLUMNS = "nome, body, state, due_at, version, tenant"


def schedule_row(one: StoredSchedule, sealing: Sealing) -> tuple[Any, ...]:
    """name, body, state, due_at."""
    return one.name, *schedule_texts(one, sealing), None if one.due_at is None else to_micros(one.due_at)


def schedule_of(row: Sequence[Any], sealing: Sealing) -> StoredSchedule:
    """Of SCHEDULE_COLUMNS."""
    name, body, state, due_at, version, _ = row
    return StoredSchedule(name, *schedule_parts(name, body, state, sealing), from_micros_or_none(due_at), version)
