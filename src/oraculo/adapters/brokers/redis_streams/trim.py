"""Remove from streams what every group has acknowledged, and nothing else.

Redis keeps acknowledged entries for ever. Everything below the oldest entry that some group has not read, or has read
and not acknowledged, is cut off in one cheap command. One slow message would hold back all that came after it, so what
this process acknowledged is also deleted one by one when that happens, if there is only one group. A stream without
groups is never touched: its reader is yet to come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from oraculo.adapters.brokers.redis_streams.connection import Command, Connection, ReplyError

ACK_TRIM_DELAY_S = 1.0  # seconds until acknowledged entries are removed
PUBLISH_TRIM_DELAY_S = 5.0  # the same for queues that others read
TRIM_NOW_ENTRIES = 5_000  # acknowledged entries that are not waited with
STUCK_AFTER_S = 5.0  # seconds that a slow message may hold back those after it
STUCK_MAX_ENTRIES = 20_000
TRIM_MAX_STREAMS = 100
DELETE_MAX_IDS = 1000

Id = tuple[int, int]
Table = dict[bytes, Any]


def parse_id(text: bytes) -> Id:
    ms, _, number = text.partition(b"-")
    return int(ms), int(number or 0)


def tables(said: object) -> list[Table]:
    """XINFO answers with names and values in turn, or with an error when there is no such stream."""
    return [dict(zip(row[::2], row[1::2], strict=True)) for row in said] if isinstance(said, list) else []


class Acked:
    """Ids of one queue that are acknowledged and perhaps still in the stream."""

    def __init__(self) -> None:
        self.new: list[bytes] = []
        self._rounds: deque[tuple[float, Id, list[bytes]]] = deque()  # when, the last of them, all of them

    def __bool__(self) -> bool:
        return bool(self.new or self._rounds)

    def held_back(self, floor: Id, now: float) -> list[bytes]:
        """Return ids of entries that should have been trimmed with all below `floor`, and were not for too long."""
        rounds = self._rounds
        if self.new:
            rounds.append((now, parse_id(self.new[-1]), self.new))
            self.new = []
        while rounds and rounds[0][1] < floor:
            rounds.popleft()
        late: list[bytes] = []
        while rounds and (
            now - rounds[0][0] >= STUCK_AFTER_S or sum(len(ids) for _, _, ids in rounds) > STUCK_MAX_ENTRIES
        ):
            late += rounds.popleft()[2]
        return late


class Trim:
    """Removes from streams what every group has acknowledged, a moment after it was."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}  # queue → when
        self._acked: dict[str, Acked] = {}

    def acked(self, queue: str, ids: list[bytes], now: float) -> bool:
        """The server has confirmed these. True when they are so many that they should be removed at once."""
        known = self._acked.get(queue)
        if known is None:
            known = self._acked[queue] = Acked()
        known.new += ids
        many = len(known.new) >= TRIM_NOW_ENTRIES
        self._soon(queue, now if many else now + ACK_TRIM_DELAY_S)
        return many

    def published(self, queue: str, now: float) -> None:
        self._soon(queue, now + PUBLISH_TRIM_DELAY_S)

    async def run(self, control: Connection, now: float) -> None:
        """Look at the streams whose turn it is."""
        names = [name for name, at in self._due.items() if at <= now][:TRIM_MAX_STREAMS]
        if not names:
            return
        for name in names:
            del self._due[name]
        said = await control.call([("XINFO", "GROUPS", name) for name in names])
        groups = {name: tables(answer) for name, answer in zip(names, said, strict=True)}
        floors = await _floors(control, groups)
        commands: list[Command] = [
            ("XTRIM", name, "MINID", "=", f"{ms}-{number}") for name, (ms, number) in floors.items()
        ]
        for name in names:
            commands += self._one_by_one(name, floors.get(name), len(groups[name]) == 1, now)
        if commands:
            await control.call(commands)

    def _one_by_one(self, name: str, floor: Id | None, alone: bool, now: float) -> Iterator[Command]:
        acked = self._acked.get(name)
        if acked is None:
            return
        if floor is None:  # the stream is gone, or its groups are
            del self._acked[name]
            return
        late = acked.held_back(floor, now)
        if alone:
            for start in range(0, len(late), DELETE_MAX_IDS):
                yield ("XDEL", name, *late[start : start + DELETE_MAX_IDS])
        if acked:
            self._soon(name, now + ACK_TRIM_DELAY_S)
        else:
            del self._acked[name]

    def _soon(self, queue: str, at: float) -> None:
        known = self._due.get(queue)
        if known is None or at < known:
            self._due[queue] = at


async def _floors(control: Connection, groups: dict[str, list[Table]]) -> dict[str, Id]:
    """Stream → the lowest id that some group still needs."""
    asked = [(name, group[b"name"]) for name, rows in groups.items() for group in rows if group[b"pending"]]
    said = await control.call([("XPENDING", name, group, "-", "+", 1) for name, group in asked]) if asked else []
    oldest = dict(zip(asked, said, strict=True))
    floors: dict[str, Id] = {}
    for name, rows in groups.items():
        if not rows or any(isinstance(oldest.get((name, group[b"name"])), ReplyError) for group in rows):
            continue
        floors[name] = min(_floor(group, oldest.get((name, group[b"name"]))) for group in rows)
    return floors


def _floor(group: Table, oldest: list[list[Any]] | None) -> Id:
    if oldest:
        return parse_id(oldest[0][0])
    ms, number = parse_id(group[b"last-delivered-id"])
    return ms, number + 1
