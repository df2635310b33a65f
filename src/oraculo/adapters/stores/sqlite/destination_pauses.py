"""Paused destinations in SQLite."""

from __future__ import annotations

import apsw

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.adapters.stores.sqlite.system_events import record_system_event
from oraculo.ports.destination_pauses import DestinationPause
from oraculo.ports.system_events import SystemEvent


def destination_pauses(connection: apsw.Connection) -> list[DestinationPause]:
    rows = fetch(connection, "SELECT alvo, ator, motivo, desde FROM destination_pauses ORDER BY alvo", ())
    return [DestinationPause(target, actor, reason, from_micros(since)) for target, actor, reason, since in rows]


def put_destination_pause(connection: apsw.Connection, one: DestinationPause, event: SystemEvent) -> bool:
    with connection:
        connection.execute(
            "INSERT INTO destination_pauses (alvo, ator, motivo, desde) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (one.target, one.actor, one.reason, to_micros(one.since)),
        )
        changed = connection.changes() == 1
        if changed:
            record_system_event(connection, event)
    return changed


def remove_destination_pause(connection: apsw.Connection, target: str, event: SystemEvent) -> bool:
    with connection:
        connection.execute("DELETE FROM destination_pauses WHERE alvo = ?", (target,))
        changed = connection.changes() == 1
        if changed:
            record_system_event(connection, event)
    return changed
