"""Rows of `unique_keys`, the same in both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros, to_micros_or_none
from oraculo.ports.unique_keys import KeyHolder, MergedRequest

UNIQUE_KEY_COLUMNS = "run, key, correlation_id, since, until, merged, recent, forgotten"
_NOW = "(SELECT at FROM journal ORDER BY position DESC LIMIT 1)"  # the newest instant that the store knows

# Rows with whether the run is open.
READ = f"""
SELECT {UNIQUE_KEY_COLUMNS},
  EXISTS (SELECT 1 FROM runs WHERE runs.run = unique_keys.run AND runs.closed_at IS NULL) FROM unique_keys"""
NEWEST = "SELECT run FROM unique_keys AS u WHERE u.key = k.value ORDER BY u.since DESC, u.run DESC LIMIT 1"
UPSERT = ", ".join(f"{name} = excluded.{name}" for name in UNIQUE_KEY_COLUMNS.split(", ")[1:])
# When runs are forgotten, so are their keys, but for those that outlive them.
FORGET_ENDED = f"DELETE FROM unique_keys WHERE until <= {_NOW} AND run"
MARK_FORGOTTEN = "UPDATE unique_keys SET forgotten = 1 WHERE run"
FORGET_OLD = f"DELETE FROM unique_keys WHERE forgotten = 1 AND until <= {_NOW}"


def row_of(holder: KeyHolder) -> list[Any]:
    recent = [[to_micros(one.at), one.correlation_id, one.actor] for one in holder.recent]
    return [
        holder.run,
        holder.key,
        holder.correlation_id,
        to_micros(holder.since),
        to_micros_or_none(holder.until),
        holder.merged,
        orjson.dumps(recent).decode(),
        int(holder.forgotten),
    ]


def holder_of(row: Sequence[Any]) -> KeyHolder:
    run, key, name, since, until, merged, recent, forgotten, is_open = row
    found = [MergedRequest(from_micros(at), asked, actor) for at, asked, actor in orjson.loads(recent)]
    kept = from_micros_or_none(until)
    return KeyHolder(key, run, name, from_micros(since), kept, merged, found, bool(is_open), bool(forgotten))
