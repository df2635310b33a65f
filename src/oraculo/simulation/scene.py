"""What everybody in one world shares: the seed's random numbers, the clock, the trace, and how bad the world is."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from oraculo.core.breaking import BreakerRules, DestinationBreaker
from oraculo.core.digests import bytes_of
from oraculo.core.plan import Plan
from oraculo.simulation.facts import Answer
from oraculo.simulation.forgers import Forger
from oraculo.simulation.loop import EPOCH, VirtualLoop
from oraculo.simulation.trace import Trace


@dataclass(slots=True)
class Dials:
    """How bad it is; drawn once."""

    masked: bool  # retries and deadlines are on, so they may hide a loss; unmasked worlds have no such excuse
    volatile: bool  # the in-process broker, which forgets everything with the process
    lossy: bool  # the broker forgets confirmed messages when it goes down
    horizon: float  # until when there are faults
    crash_point: float  # chance of dying at each call out of the process
    crash_every: float  # mean seconds between deaths at any instant; 0: never
    lost_confirm: float
    duplicate: float
    delay: float
    broker_down_every: float
    store_down_every: float
    pause: float  # chance that a call takes a while
    wall_jumps: bool

    @classmethod
    def draw(cls, rng: Random, masked: bool) -> Dials:
        horizon = round(rng.uniform(6, 25), 3)
        volatile = rng.random() < 0.4
        if rng.random() < 0.08:  # a calm world
            return cls(masked, volatile, False, horizon, 0, 0, 0, 0, 0, 0, 0, 0.1, False)
        return cls(
            masked=masked,
            volatile=volatile,
            lossy=masked and not volatile and rng.random() < 0.3,
            horizon=horizon,
            crash_point=rng.choice((0, 0.005, 0.02, 0.06)),
            crash_every=rng.choice((0, 4, 10)),
            lost_confirm=rng.choice((0, 0.05, 0.25)),
            duplicate=rng.choice((0, 0.1, 0.3)),
            delay=rng.choice((0, 0.2, 0.5)),
            broker_down_every=rng.choice((0, 3, 6)),
            store_down_every=rng.choice((0, 0, 5, 3)),
            pause=rng.choice((0, 0.2, 0.6)),
            wall_jumps=rng.random() < 0.4,
        )


class Scene:
    def __init__(self, rng: Random, loop: VirtualLoop, trace: Trace, dials: Dials) -> None:
        self.rng = rng
        self.loop = loop
        self.trace = trace
        self.dials = dials
        self.forger: Forger | None = None  # set: orders have tokens, and answers need them
        self.shapes = False  # requests have maps, loops, waits and children
        self.chooses = False  # all workers lease, and tickets are given to those that are best for them
        self.offers = False  # some of them are workers of the broker, which wait for offers
        self.ceiling: int | None = None  # tickets of plans with priorities that may be out at once
        self.recalls = False  # orders under the ceiling are recalled by pauses while the broker is away
        self.is_fleet = False  # several processes keep that ceiling together, and plans may be named tasks
        self.equal_request: dict[str, Any] | None = None  # set: requests exist once, and some of them are this one
        self.breaker: BreakerRules | None = None  # set: destinations have breakers
        self.on_breaker: Callable[[DestinationBreaker], None] | None = None  # told of each that is written
        self.broken: set[str] = set()  # sources and executors that fail just now
        self.freezes = 0.0  # chance that a process stands still between a commit and its messages
        self.faults = True
        self.wall_offset = 0.0
        self.store_down: str | None = None  # "full": nothing can be written; "away": not even read
        self.answers: dict[int, Answer] = {}  # by the digest of their bytes
        self.plans: dict[str, Plan] = {}  # by correlation_id
        self._counter = 0
        self.lives = 0  # of all processes

    def log(self, text: str) -> None:
        self.trace.now = self.loop.time()
        self.trace.log(text)

    def violate(self, rule: str, detail: str) -> None:
        self.trace.now = self.loop.time()
        self.trace.violate(rule, detail)

    def count(self, what: str, number: int = 1) -> None:
        self.trace.tally[what] += number

    def chance(self, share: float) -> bool:
        return share > 0 and self.rng.random() < share

    def trouble(self, share: float) -> bool:
        """Chance of a fault; none once the faults are over."""
        return self.faults and self.chance(share)

    def number(self) -> int:
        self._counter += 1
        return self._counter

    def next_life(self) -> int:
        self.lives += 1
        return self.lives

    def wall(self) -> float:
        return EPOCH + self.loop.time() + self.wall_offset

    def timestamp(self) -> datetime:
        return datetime.fromtimestamp(EPOCH + self.loop.time(), UTC)

    def database_clock(self) -> datetime:
        """The clock of a database that several processes share. It is never set."""
        return self.timestamp()

    async def sleep(self, least: float, most: float) -> None:
        await asyncio.sleep(round(self.rng.uniform(least, most), 6))

    def said(self, raw: bytes, answer: Answer) -> None:
        self.answers[zlib.crc32(raw) or 1] = answer

    # -- what journals ask -------------------------------------------------------------------------------------------

    def answer(self, digest: int) -> Answer | None:
        return self.answers.get(bytes_of(digest))

    def honest_timeouts(self) -> bool:
        return not self.dials.masked
