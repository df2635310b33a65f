"""Reads a server's database after the fact and checks what every journal must hold."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from oraculo.bootstrap.adapters import store_of
from oraculo.core import events as ev
from oraculo.core.replay import rebuild, replay_step
from oraculo.ports.journal import Recorded


def check(store: Path | str) -> Counter[str]:
    """Every journal ends once, is numbered without gaps, explains every attempt, and replays to itself. `store` is a
    SQLite file or a URL."""
    return asyncio.run(_check(_url(store)))


def _url(store: Path | str) -> str:
    return f"sqlite:///{store}" if isinstance(store, Path) else store


def unfinished(store: Path, correlation_id: str = "") -> int:
    """Tickets that are not closed yet, of all orchestrations or of one."""
    return _sum(store, "open", correlation_id)


def owed(store: Path, correlation_id: str) -> int:
    """Tickets whose order no broker has confirmed yet."""
    return _sum(store, "owes", correlation_id)


def _sum(store: Path, column: str, correlation_id: str) -> int:
    """From the file itself, which whoever was killed has left behind."""
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        sql = f"SELECT coalesce(sum({column}), 0) FROM runs WHERE closed_at IS NULL AND ? IN ('', correlation_id)"
        return int(connection.execute(sql, (correlation_id,)).fetchone()[0])


def counted(store: Path | str) -> dict[tuple[str, str], int]:
    """(queue, verdict) → messages, as the database counted them."""

    async def read() -> dict[tuple[str, str], int]:
        async with store_of(_url(store)) as opened:
            return await opened.counts()

    return asyncio.run(read())


async def _check(url: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    journals: dict[int, list[Recorded]] = {}
    async with store_of(url) as store:
        position = 0
        while page := await store.tail(position, 2000):
            position = page[-1].position
            for one in page:
                journals.setdefault(one.run, []).append(one)
        assert await store.live() == [], "something is still owed or due"
        seen["dead letters"] = sum(total for _, _, total in await store.dead_letter_groups())
    for run, journal in journals.items():
        seen["orchestrations"] += 1
        endings = [e for one in journal for e in one.events if isinstance(e, ev.OrchestrationClosed)]
        assert len(endings) == 1, f"{run} ended {len(endings)} times"
        seen[endings[0].status.value] += 1
        expected = 1
        for one in journal:
            assert one.first == expected, f"{run}: event {expected} is missing"
            expected += len(one.events)
        state = rebuild(journal)
        for ticket in state.tickets:
            assert len(ticket.causes or ()) >= ticket.attempt - 1, f"{run}: an attempt without a cause"
            seen["attempts"] += ticket.attempt
        seen["answers applied"] += sum(isinstance(e, ev.TicketConcluded) for one in journal for e in one.events)
        seen["notices delivered"] += sum(isinstance(e, ev.NoticeDelivered) for one in journal for e in one.events)
        replay(run, journal)
    return seen


async def most_at_once(url: str) -> int:
    """Tickets that a broker has confirmed and whose attempt is not over, by the journal, at the worst moment."""
    running: set[tuple[int, int]] = set()
    most = 0
    async with store_of(url) as store:
        for step in await store.tail(0, 100_000):
            for event in step.events:
                if isinstance(event, ev.DispatchConfirmed):
                    running |= {(step.run, position) for position, _ in event.tickets}
                elif isinstance(event, ev.TicketConcluded | ev.TicketFailed | ev.AttemptFailed):
                    running.discard((step.run, event.ticket))
            most = max(most, len(running))
        return most


def replay(run: int, journal: list[Recorded]) -> None:
    state = None
    for one in journal:
        done = replay_step(state, one)
        assert done.events == one.events, f"{run}: replaying step {one.first} gives something else"
        state = done.state
