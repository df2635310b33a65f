"""What has to be done now and then while the server can be reached, for all queues in one go.

- *Keep*: what this process holds must not look abandoned, so its idle time is set back long before the lease ends. What
  turns out to belong to others by now is not held any more.
- *Give back*: verdicts that could not be sent, and messages that were taken and that no fetch wanted for a second, go
  to a consumer that does not exist (`RETURNED_CONSUMER`), as if they had been abandoned long ago.
- *Claim*: a fetch that waits for messages also gets those that were abandoned or given back. The server lets one of
  several claimers win.
- *Trim* acknowledged entries, *sweep* the names of consumers that are long gone, *ping*.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from oraculo.adapters.brokers.redis_streams.connection import Command, ReplyError
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.adapters.brokers.redis_streams.source import CONSUMER_PREFIX, Source
from oraculo.adapters.brokers.redis_streams.trim import Trim, tables
from oraculo.adapters.brokers.redis_streams.url import Options

CHECK_INTERVAL_S = 0.25
IDLE_TIMEOUT_S = 1.0  # seconds without a fetch after which nothing is kept in stock
CLAIM_INTERVAL_S = 1.0  # seconds between two looks for abandoned messages
PING_INTERVAL_S = 3.0
SWEEP_INTERVAL_S = 60.0
FORGET_AFTER_S = 600.0  # a queue without a fetch for so long is forgotten; used again, it gets a new consumer name
CONSUMER_GONE_AFTER_S = (
    3600.0  # a consumer that was not heard of for so long and holds nothing: its name is not used any more
)
RETURNED_CONSUMER = "devolvidas"
RETURNED_IDLE_MS = 86_400_000
PENDING_PAGE_ENTRIES = 1000


class Upkeep:
    """The periodic work for all queues of one broker."""

    def __init__(self, options: Options, sources: dict[str, Source]) -> None:
        self._options = options
        self._sources = sources
        self._group = options.group
        self._keep_every = options.lease / 3
        self._claim_every = min(CLAIM_INTERVAL_S, options.lease / 3)
        self._nudge = asyncio.Event()
        self._stopped = False
        self.trim = Trim()

    def hurry(self) -> None:
        """Look at once at what is due."""
        self._nudge.set()

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped = True
        self._nudge.set()

    async def start(self, session: Session) -> None:
        """Before the first read: give back what is ours and was lost on its way here, and send verdicts."""
        self._forget()
        for source in list(self._sources.values()):
            await self.keep(session, source, strays=True)

    async def run(self, session: Session) -> None:
        """Do what is due until the session is over, or until `stop`."""
        clock = asyncio.get_running_loop().time
        keep_at = clock() + self._keep_every
        ping_at, sweep_at = clock() + PING_INTERVAL_S, clock() + SWEEP_INTERVAL_S
        session.lost.add_done_callback(lambda _: self.hurry())
        while not (self._stopped or session.lost.done()):
            self._nudge.clear()
            now = clock()
            self._give_back_unused(now)
            await self.claim(session, [s for s in self._sources.values() if s.waiters and s.claim_at <= now])
            everything = now >= keep_at
            for source in list(self._sources.values()):
                if everything or source.owed_acks or source.owed_returns:
                    await self.keep(session, source)
            if everything:
                keep_at = now + self._keep_every
            await self.trim.run(session.control, now)
            if now >= ping_at:
                await session.ping()
                ping_at = now + PING_INTERVAL_S
            if now >= sweep_at:
                await self._sweep(session)
                sweep_at = now + SWEEP_INTERVAL_S
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(CHECK_INTERVAL_S):
                await self._nudge.wait()
        except TimeoutError:
            return

    # -- keep and give back ------------------------------------------------------------------------------------------

    def give_back(self, source: Source, ids: Sequence[bytes]) -> Command:
        """The command that lets any consumer claim these."""
        return ("XCLAIM", source.name, self._group, RETURNED_CONSUMER, 0, *ids, "IDLE", RETURNED_IDLE_MS, "JUSTID")

    def acknowledge(self, source: Source, ids: Sequence[bytes]) -> Command:
        return ("XACK", source.name, self._group, *ids)

    def _give_back_unused(self, now: float) -> None:
        for source in self._sources.values():
            if source.ready and not source.waiters and now - source.fetched_at >= IDLE_TIMEOUT_S:
                source.owed_returns += source.unused()

    async def keep(self, session: Session, source: Source, *, strays: bool = False) -> None:
        """`strays`: no answer is on its way here, so what the server says is ours and is not held never arrived."""
        if source.owed_acks:
            await self._ack_owed(session, source)
        held, returns = list(source.held), list(source.owed_returns)
        if not (held or returns or strays):
            return
        ours = await self._ours(session, source)
        if ours is None:
            return
        known = set(held)
        back = [key for key in returns if key in ours]
        if strays:
            back += ours - source.held.keys() - set(back)
        keep = [key for key in held if key in ours and key in source.held]
        commands: list[Command] = [self.give_back(source, back)] if back else []
        if keep:
            commands.append(("XCLAIM", source.name, self._group, source.consumer, 0, *keep, "JUSTID"))
        if commands and any(isinstance(reply, ReplyError) for reply in await session.control.call(commands)):
            return
        del source.owed_returns[: len(returns)]
        source.lose(known - ours)
        if back:
            source.claim_at = 0.0
            if source.waiters:
                self.hurry()

    async def _ack_owed(self, session: Session, source: Source) -> None:
        acks = list(source.owed_acks)
        (reply,) = await session.control.call([self.acknowledge(source, acks)])
        if not isinstance(reply, ReplyError):
            del source.owed_acks[: len(acks)]
            self.trim.acked(source.name, acks, asyncio.get_running_loop().time())

    async def _ours(self, session: Session, source: Source) -> set[bytes] | None:
        """What the server says that we hold; None when it does not say."""
        found: set[bytes] = set()
        start = "-"
        while True:
            command: Command = ("XPENDING", source.name, self._group, start, "+", PENDING_PAGE_ENTRIES, source.consumer)
            (reply,) = await session.control.call([command])
            if isinstance(reply, ReplyError):
                if str(reply).startswith("NOGROUP"):
                    source.forget()
                return None
            found.update(row[0] for row in reply)
            if len(reply) < PENDING_PAGE_ENTRIES:
                return found
            start = f"({reply[-1][0].decode()}"

    # -- claim -------------------------------------------------------------------------------------------------------

    async def claim(self, session: Session, sources: Sequence[Source], limit: int | None = None) -> None:
        """Give the fetches that wait what other consumers left."""
        if not sources:
            return
        now = asyncio.get_running_loop().time()
        idle = int(self._options.lease * 1000)
        for source in sources:
            source.claim_at = now + self._claim_every
        found = await session.control.call(
            [
                ("XPENDING", source.name, self._group, "IDLE", idle, "-", "+", limit or max(1, source.demand(now)[0]))
                for source in sources
            ]
        )
        wanted: list[tuple[Source, list[bytes]]] = []
        for source, rows in zip(sources, found, strict=True):
            ids = [] if isinstance(rows, ReplyError) else [row[0] for row in rows if row[0] not in source.held]
            if ids:
                wanted.append((source, ids))
        if not wanted:
            return
        claimed = await session.control.call(
            [("XCLAIM", source.name, self._group, source.consumer, idle, *ids) for source, ids in wanted]
        )
        for (source, _), entries in zip(wanted, claimed, strict=True):
            if isinstance(entries, list):
                source.arrived((entry for entry in entries if entry and entry[1]), True)

    # -- sweep -------------------------------------------------------------------------------------------------------

    async def _sweep(self, session: Session) -> None:
        """Remove consumers of processes that are gone, and forget queues that are no longer used here."""
        self._forget()
        names = list(self._sources)
        if not names:
            return
        said = await session.control.call([("XINFO", "CONSUMERS", name, self._group) for name in names])
        commands: list[Command] = [
            ("XGROUP", "DELCONSUMER", name, self._group, consumer[b"name"])
            for name, answer in zip(names, said, strict=True)
            for consumer in tables(answer)
            if _long_gone(consumer)
        ]
        if commands:
            await session.control.call(commands)

    def _forget(self) -> None:
        before = asyncio.get_running_loop().time() - FORGET_AFTER_S
        for name in [name for name, source in self._sources.items() if source.empty and source.fetched_at < before]:
            del self._sources[name]

    async def leave(self, session: Session) -> None:
        """Give back all that is ours, and take our names off the server. To be called when reading has ended."""
        for source in self._sources.values():
            source.surrender()
            await self.keep(session, source, strays=True)
            if await self._ours(session, source) == set():
                await session.control.call([("XGROUP", "DELCONSUMER", source.name, self._group, source.consumer)])
        await self.trim.run(session.control, math.inf)


def _long_gone(consumer: dict[bytes, Any]) -> bool:
    ours = consumer[b"name"].startswith(CONSUMER_PREFIX.encode())
    return bool(ours and not consumer[b"pending"] and consumer[b"idle"] > CONSUMER_GONE_AFTER_S * 1000)
