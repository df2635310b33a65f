"""What the server says about itself and about a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oraculo.adapters.brokers.redis_streams.connection import Connection, ReplyError
from oraculo.adapters.brokers.redis_streams.trim import Table, parse_id, tables

SETTINGS = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy")
CLOCK_IDS = 10**12  # ids below this are not milliseconds of our time: they were chosen by hand


@dataclass(slots=True)
class Standing:
    waiting: int
    oldest_s: float | None


async def standing_of(control: Connection, queue: str, group: str) -> Standing:
    """What the group has not read yet, and since when the first of it waits. Nothing is made by asking."""
    length, groups = await control.call([("XLEN", queue), ("XINFO", "GROUPS", queue)])
    if isinstance(length, ReplyError) or not length:
        return Standing(0, None)
    ours = next((row for row in tables(groups) if row[b"name"] == group.encode()), None)
    start = "-" if ours is None else f"({ours[b'last-delivered-id'].decode()}"
    first, time = await control.call([("XRANGE", queue, start, "+", "COUNT", 1), ("TIME",)])
    if isinstance(first, ReplyError) or not first:
        return Standing(0, None)
    return Standing(_waiting(length, ours), _age(first[0][0], time))


def _waiting(length: int, ours: Table | None) -> int:
    if ours is None:
        return length
    lag = ours.get(b"lag")  # not known before Redis 7, nor after entries were deleted by hand
    return lag if isinstance(lag, int) else max(1, length - int(ours[b"pending"]))


def _age(first: bytes, time: Any) -> float | None:
    ms = parse_id(first)[0]
    if isinstance(time, ReplyError) or ms < CLOCK_IDS:
        return None
    return max(0.0, int(time[0]) + int(time[1]) / 1e6 - ms / 1000)


async def durability_of(control: Connection) -> str:
    """The append-only file decides. A server that may evict streams keeps nothing for certain."""
    said = await control.call([("CONFIG", "GET", name) for name in SETTINGS])
    found = {
        name: answer[1].decode()
        for name, answer in zip(SETTINGS, said, strict=True)
        if isinstance(answer, list) and answer
    }
    if not found:
        found = await _from_info(control)
    if found.get("appendonly") != "yes" or found.get("maxmemory-policy") != "noeviction":
        return "best-effort"
    if found.get("appendfsync") == "always" and found.get("no-appendfsync-on-rewrite") == "no":
        return "power-safe"
    return "crash-safe"


async def _from_info(control: Connection) -> dict[str, str]:
    """CONFIG is forbidden to us: INFO tells less, and the weaker claim holds."""
    persistence, memory = await control.call([("INFO", "persistence"), ("INFO", "memory")])
    if isinstance(persistence, ReplyError) or isinstance(memory, ReplyError):
        return {}
    lines = (persistence + memory).decode().splitlines()
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    return {
        "appendonly": "yes" if said.get("aof_enabled") == "1" else "no",
        "maxmemory-policy": said.get("maxmemory_policy", ""),
    }
