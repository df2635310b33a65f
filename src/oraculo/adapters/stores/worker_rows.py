"""Registered workers as rows of either database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.stores.instants import from_micros
from oraculo.ports.workers import StoredWorker

WORKER_COLUMNS = "nome, body, beat, answered, failed, last_error, drain, registered_at, last_seen, lease_until"
FORGETTING = "lost_at IS NOT NULL AND lease_until < {now} - lease * {leases}"


def worker_of(row: Sequence[Any], now: int) -> StoredWorker:
    """Of WORKER_COLUMNS."""
    key, body, beat, answered, failed, error, drain, registered_at, last_seen, lease_until = row
    return StoredWorker(
        key,
        bytes(body),
        bytes(beat),
        answered,
        failed,
        None if error is None else bytes(error),
        None if drain is None else bytes(drain),
        from_micros(registered_at),
        from_micros(last_seen),
        from_micros(lease_until),
        lease_until >= now,
    )
