"""Forgets what ended long ago, by itself: a little at a time, by type of task and tenant, archived before.

One process at a time does it. It goes through the ends in their order, once for each age, so that a round costs what
has become old enough since the last one. What a projection has not read yet is left for the next round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from oraculo.core.retention import RetentionRules, cutoff
from oraculo.errors import OraculoError
from oraculo.ports.clock import Clock
from oraculo.ports.ended_runs import EndedRun
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.project import unread

log = structlog.get_logger("oraculo.retention")

DUTY = "retention"
ROUND_INTERVAL_S = 60.0
PAGE_RUNS = 200  # looked at, archived and forgotten together
PAGE_PAUSE_S = 0.02  # so that others write in between
PRUNED = "journal_pruned"  # the system event that says so, so that what is pruned is not taken for lost
PRUNED_BEFORE = "antes"


class RunArchive(Protocol):
    async def keep(self, runs: Sequence[tuple[EndedRun, Sequence[Recorded]]]) -> None:
        """Keep the whole journals of these; durable when it returns. The same again does no harm."""
        ...


@dataclass(slots=True)
class DueRuns:
    """How many ended runs of a tenant and a type of task are older than they are kept."""

    tenant: str
    tipo: str | None
    age: timedelta
    count: int = 0


class RetentionRounds:
    """`read_types`: the projections that read one type of orchestrations only; `ignored`: those that do not count."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rules: RetentionRules,
        archive: RunArchive | None = None,
        read_types: dict[str, str] | None = None,
        ignored: Sequence[str] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.rules = rules
        self.forgotten = 0  # since the start
        self.failing = ""  # why the last round failed
        self._store = store
        self._clock = clock
        self._archive = archive
        self._read_types = read_types or {}
        self._ignored = tuple(ignored)
        self._sleep = sleep
        self._reached: dict[timedelta, EndedRun] = {}  # age → the last end that was looked at
        self._noted: datetime | None = None  # up to when it is noted that ends are forgotten

    async def run(self) -> None:
        """Do a round every minute, for ever."""
        while True:
            await self._sleep(ROUND_INTERVAL_S)
            try:
                if await self._is_ours():
                    await self.round()
                self.failing = ""
            except (OraculoError, OSError) as error:
                self.failing = str(error) or type(error).__name__
                log.warning("retention round failed", error=self.failing)

    async def _is_ours(self) -> bool:
        shared = self._store.sharing
        return shared is None or await shared.claim_duty(DUTY) is not None

    async def round(self) -> int:
        """Forget all that is old enough; return how many."""
        least = await unread(self._store, self._read_types, self._ignored)
        read = None if least is None else least[1].read
        done = 0
        for age in self.rules.ages:
            done += await self._round_of(age, read)
        if done:
            log.info("orchestrations forgotten", count=done, archived=self._archive is not None)
        self.forgotten += done
        return done

    async def due(self) -> list[DueRuns]:
        """List what a round would forget now, by tenant and type of task; it changes nothing. What a projection has not
        read yet is counted, too: a round leaves it for a later one."""
        found: dict[tuple[str, str | None], DueRuns] = {}
        for age in self.rules.ages:
            before, place = cutoff(self._clock.now(), age), None
            while page := await self._store.ended_runs(place, before, PAGE_RUNS):
                for one in page:
                    if one.settled and self.rules.age_of(one.tenant, one.tipo) == age:
                        known = found.setdefault((one.tenant, one.tipo), DueRuns(one.tenant, one.tipo, age))
                        known.count += 1
                place = page[-1]
                if len(page) < PAGE_RUNS:
                    break
                await self._sleep(PAGE_PAUSE_S)
        return sorted(found.values(), key=lambda one: (one.tenant, one.tipo or ""))

    async def _round_of(self, age: timedelta, read: int | None) -> int:
        before, done, complete = cutoff(self._clock.now(), age), 0, True
        place = self._reached.get(age)
        while page := await self._store.ended_runs(place, before, PAGE_RUNS):
            wanted = [one for one in page if self.rules.age_of(one.tenant, one.tipo) == age]
            gone = await self._forget(wanted, before, read) if wanted else 0
            done += gone
            complete = complete and gone == len(wanted)  # what is left is looked at again in the next round
            place = page[-1]
            if complete:
                self._reached[age] = place
            if len(page) < PAGE_RUNS:
                break
            await self._sleep(PAGE_PAUSE_S)
        return done

    async def _forget(self, wanted: Sequence[EndedRun], before: datetime, read: int | None) -> int:
        if self._noted is None or self._noted < before:
            body = {PRUNED_BEFORE: before.isoformat(), "automatico": True}
            await self._store.record_system_event(SystemEvent(PRUNED, self._clock.now(), body))
            self._noted = before
        ready = [one for one in wanted if one.settled]
        if self._archive is not None:
            steps = await self._store.load([one.run for one in ready])
            ready = [one for one in ready if one.run in steps and (read is None or steps[one.run][-1].position <= read)]
            await self._archive.keep([(one, steps[one.run]) for one in ready])
        return await self._store.forget_runs([one.run for one in ready], read)
