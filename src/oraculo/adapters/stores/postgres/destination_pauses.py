"""Paused destinations in PostgreSQL."""

from __future__ import annotations

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.adapters.stores.postgres.connections import Connection, fetch
from oraculo.adapters.stores.postgres.system_events import record_system_event
from oraculo.ports.destination_pauses import DestinationPause
from oraculo.ports.system_events import SystemEvent


async def destination_pauses(connection: Connection) -> list[DestinationPause]:
    rows = await fetch(connection, "SELECT alvo, ator, motivo, desde FROM destination_pauses ORDER BY alvo")
    return [DestinationPause(target, actor, reason, from_micros(since)) for target, actor, reason, since in rows]


async def put_destination_pause(connection: Connection, one: DestinationPause, event: SystemEvent) -> bool:
    done = await connection.execute(
        "INSERT INTO destination_pauses (alvo, ator, motivo, desde) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (one.target, one.actor, one.reason, to_micros(one.since)),
    )
    if done.rowcount != 1:
        return False
    await record_system_event(connection, event)
    return True


async def remove_destination_pause(connection: Connection, target: str, event: SystemEvent) -> bool:
    if (await connection.execute("DELETE FROM destination_pauses WHERE alvo = %s", (target,))).rowcount != 1:
        return False
    await record_system_event(connection, event)
    return True
