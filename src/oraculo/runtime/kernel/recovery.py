"""Sending again what the journal says is owed: after a restart, for dead processes, and after a commit whose outcome
was not known. Doing it twice does no harm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import structlog

from oraculo.chunks import chunks_by_count
from oraculo.core.effects import Effect, owed_effects
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.ports.broker import Broker
from oraculo.ports.effects import EffectSink
from oraculo.ports.store import Store
from oraculo.runtime.kernel.open_runs import OpenRuns
from oraculo.runtime.kernel.timers import TimerLoop
from oraculo.runtime.watchers import RunWatchers

log = structlog.get_logger("oraculo.engine")

Owed = tuple[Orchestration, list[Effect]]
LOAD_MAX_RUNS = 500  # at once


class Recovery:
    """`timers`: the loop that wakes orchestrations, in a process that has one."""

    def __init__(
        self,
        store: Store,
        broker: Broker,
        effects: EffectSink,
        watchers: RunWatchers,
        open_runs: OpenRuns,
        timers: TimerLoop | None = None,
    ) -> None:
        self._store = store
        self._broker = broker
        self._effects = effects
        self._watchers = watchers
        self._open_runs = open_runs
        self._timers = timers

    async def take_all(self) -> None:
        """Look after all that is open: no other process works on this store. What a volatile broker has forgotten is
        sent again too."""
        resend = self._broker.traits.volatile
        live = await self._store.live()
        self._open_runs.count = sum(1 for one in live if one.open)
        if self._timers is not None:
            for one in live:
                self._timers.timers.set(one.run, one.wake_at)
        wanted = [one.run for one in live if one.owes or (resend and one.open)]
        owed: list[Owed] = []
        async for some in self._owed_by(wanted, resend=resend):
            owed += some
        self._effects.take_together(owed)
        if live:
            log.info("recovered", open=self._open_runs.count, sent_again=len(wanted))

    async def send_again(self, runs: Sequence[int], *, resend: bool = False) -> None:
        """Carry out what these orchestrations owe; with `resend` also what the broker forgets when a process ends."""
        async for some in self._owed_by(runs, resend=resend):
            self._effects.take_together(some)

    async def _owed_by(self, runs: Sequence[int], *, resend: bool) -> AsyncIterator[list[Owed]]:
        forgotten = self._broker.forgets if resend else None
        for some in chunks_by_count(runs, LOAD_MAX_RUNS):
            states = [rebuild(recorded) for recorded in (await self._store.load(some)).values()]
            yield [(state, owed_effects(state, forgotten)) for state in states]

    async def resolve(self, uncertain: dict[int, int]) -> None:
        """Find out whether transactions that failed were written all the same, and then do what they owe. What was not
        written owes nothing new, so an outage sends nothing again and again. `uncertain`: run → version before it."""
        owed: list[Owed] = []
        for run, recorded in (await self._store.load(list(uncertain))).items():
            state = rebuild(recorded)
            if self._timers is not None:
                self._timers.recovered(state)
            if state.version > uncertain[run]:
                owed.append((state, owed_effects(state)))
                self._watchers.changed(run)
                result = await self._store.result(run)
                if result is not None:
                    self._watchers.ended(run, result)
        self._effects.take_together(owed)
        if self._store.sharing is None:
            self._open_runs.count = sum(1 for one in await self._store.live() if one.open)
