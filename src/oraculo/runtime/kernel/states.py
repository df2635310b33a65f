"""Committed states for readers: from memory when they are current there, else folded from the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from oraculo.core import siblings
from oraculo.core.commands import RecordResult
from oraculo.core.matching import match
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.ports.store import Store
from oraculo.ports.work import Work
from oraculo.runtime.kernel.cache import StateCache

NEWEST_MAX_RUNS = 10_000


class States:
    """`cache` holds the live states. They run ahead of the store between a step and its commit; `committed` is clear
    meanwhile, so that readers wait."""

    def __init__(self, store: Store, cache: StateCache | None = None) -> None:
        self.cache = cache or StateCache()
        self.committed = asyncio.Event()
        self.committed.set()
        self._store = store
        self._sharing = store.sharing
        self._newest: dict[int, int] = {}  # run → the version that the store had when it was asked last

    async def run_of(self, correlation_id: str) -> int | None:
        """Return the number of the orchestration of that id, None when there is none."""
        run = self.cache.run_of(correlation_id)
        return run if run is not None else (await self._store.locate([correlation_id])).get(correlation_id)

    async def runs_of(self, correlation_ids: Sequence[str]) -> dict[str, int]:
        """Return id → run number for the ids that exist; the store is asked once."""
        found = {name: run for name in correlation_ids if (run := self.cache.run_of(name)) is not None}
        unknown = sorted({name for name in correlation_ids if name not in found})
        return found | (await self._store.locate(unknown)) if unknown else found

    async def state(self, run: int) -> Orchestration | None:
        """Return the committed state of an orchestration. Read it at once: it may be the live one, which changes."""
        seen = (await self._sharing.progress([run])).get(run) if self._sharing is not None else None
        while not self.committed.is_set():  # once is not enough: the next transaction may have begun meanwhile
            await self.committed.wait()
        state = self.cache.get(run)
        if state is None or (seen is not None and state.version < seen.version):
            recorded = (await self._store.load([run])).get(run)
            if recorded is None:
                await self._store.events(run, 0, 1)  # ErasedError when it is there and cannot be read any more
            state = rebuild(recorded) if recorded else None
        return state

    async def result(self, run: int) -> bytes | None:
        """Return the final document. The store is not asked about a run that is open, when only this process can close
        it."""
        state = None if self._sharing is not None else self.cache.get(run)
        return None if state is not None and state.closed_at is None else await self._store.result(run)

    def only_counts(self, works: Sequence[Work]) -> bool:
        """Return whether these are answers after which nothing follows until others come, as far as memory knows."""
        answered: dict[int, tuple[Orchestration, list[int]]] = {}
        for work in works:
            answer = work.command
            if type(answer) is not RecordResult or not answer.ok:
                return False
            state = self.cache.get(work.run or self.cache.run_of(work.correlation_id) or 0)
            position = None if state is None else match(state, answer)
            if state is None or not isinstance(position, int):
                return False
            answered.setdefault(state.run, (state, []))[1].append(position)
        return all(siblings.are_only_counted(state, positions) for state, positions in answered.values())

    def still_owed(self, run: int, tickets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        """Filter out (position, attempt) pairs that are known to be settled. The state in memory may be older than what
        others have committed, so attempts and tickets that it does not know yet are kept."""
        state = self.cache.get(run) if self.committed.is_set() else None
        if state is None:
            return tickets
        return [one for one in tickets if state.may_owe_order(*one)]

    async def look_at(self, runs: Sequence[int]) -> None:
        """Ask a store that other processes write to, in one query, how far these runs are: `filter_owed` then reads
        those anew that are behind in memory, because another process may have paused or closed them."""
        if self._sharing is None:
            return
        found = await self._sharing.progress(runs)
        if len(self._newest) > NEWEST_MAX_RUNS:
            self._newest.clear()
        self._newest |= {run: progress.version for run, progress in found.items()}

    async def filter_owed(
        self, run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool
    ) -> Sequence[tuple[int, int]]:
        """Filter out pairs that are settled, as `still_owed`, but ask the store about a run that is not in memory: one
        that has ended is dropped from there. With `running_too` tickets that are with workers still count."""
        while not self.committed.is_set():
            await self.committed.wait()
        state = self.cache.get(run)
        if state is None or state.version < self._newest.get(run, 0):
            state = await self.state(run)
        if state is None:  # forgotten with its journal
            return []
        if state.paused is not None:  # what is owed is taken anew when it goes on
            tickets = [one for one in tickets if one[0] not in state.owed]
        if running_too:
            return [one for one in tickets if state.may_owe_order(*one) or state.wants_answer(*one)]
        return [one for one in tickets if state.may_owe_order(*one)]
