"""Many pieces of work → steps → one transaction → outcomes.

The states in memory run ahead of the disk only between the step and the commit; no caller is told anything, and nothing
is sent, before the commit returned. When the commit fails, the states that ran ahead are dropped and callers are told
nothing but the failure.
"""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.errors import OraculoError, StoreUnavailableError
from oraculo.ports.clock import Clock
from oraculo.ports.journal import Batch, LockedSnapshot
from oraculo.ports.store import Store
from oraculo.ports.work import Work
from oraculo.runtime import crash
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.runtime.kernel.decider import CommitGuard, CoreDecider, Decider, Known
from oraculo.runtime.kernel.states import States
from oraculo.runtime.kernel.transaction import Transaction

BROKEN_TOO = "another message of the same orchestration could not be handled; try again"


class Handler:
    """`decider` turns work into steps, the core itself by default; `guard` may hold runs back from a commit. `known`
    gives verdicts of policies that need not be asked for."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        states: States,
        decider: Decider | None = None,
        guard: CommitGuard | None = None,
        known: Known | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._states = states
        self._cache = states.cache
        self._decider = decider or CoreDecider(states.cache, evaluate_inline, known)
        self._guard = guard
        # Runs of a transaction that failed → their version before it. It may have been written all the same.
        self.uncertain_commits: dict[int, int] = {}
        self._loaded: list[int] = []  # runs that were loaded since `release`

    async def handle(self, works: Sequence[Work]) -> Transaction:
        """Commit all of it, or raise StoreUnavailableError with nothing changed. Callers are told before it returns."""
        try:
            found = await self._load(works)
        except BaseException as error:
            for work in works:
                work.fail(error)
            raise
        erased = {name: run for name, run in found.runs.items() if run not in found.news}
        transaction = Transaction(Batch(found.at or self._clock.now()), works, found.keys, found.holders, erased)
        try:
            decide = self._decider.decide
            transaction.outcomes = [(work, decide(work, transaction)) for work in works]
            if transaction.broken:
                why: OraculoError = StoreUnavailableError(BROKEN_TOO)
                transaction.leave_out(dict.fromkeys(transaction.broken, why), self._cache)
            if self._guard is not None:
                await self._ask_guard(self._guard, transaction)
        except BaseException:
            await self._store.abandon()
            raise
        await self._commit(transaction)
        return transaction

    async def _load(self, works: Sequence[Work]) -> LockedSnapshot:
        """Bring every orchestration that the work names into the cache, as it is in the store now."""
        found = await self._store.begin(self._decider.locks(works))
        if found.at is not None:
            self._clock.follow(found.at)
        for run in found.gone:
            self._cache.drop(run)
        for run, recorded in found.news.items():
            self._cache.put(rebuild(recorded, self._cache.get(run)))
            self._loaded.append(run)
        return found

    async def _ask_guard(self, guard: CommitGuard, transaction: Transaction) -> None:
        """Readers wait meanwhile: the states in memory are not written yet."""
        self._states.committed.clear()
        try:
            refused = await guard.refused(transaction)
        finally:
            self._states.committed.set()
        if refused:
            transaction.leave_out(refused, self._cache)

    async def _commit(self, transaction: Transaction) -> None:
        batch = transaction.batch
        if not batch:
            await self._store.abandon()
        else:
            self._states.committed.clear()
            crash.point("before_commit")
            if transaction.closed:
                crash.point("before_close")
            try:
                await self._store.append(batch)
            except BaseException as error:
                for done in batch.steps:
                    self.uncertain_commits.setdefault(done.state.run, done.first - 1)
                    self._cache.drop(done.state.run)
                for work, _ in transaction.outcomes:
                    work.fail(error)
                raise
            finally:
                self._states.committed.set()
            crash.point("after_commit")
        for work, outcome in transaction.outcomes:
            work.settle(outcome)

    def release(self, transaction: Transaction) -> None:
        """After the effects are on their way: forget what is finished, and keep the cache within bounds."""
        for done in transaction.steps:
            self._forget_finished(done.state)
        for run in self._loaded:  # for a duplicate, a late answer, a question
            state = self._cache.get(run)
            if state is not None:
                self._forget_finished(state)
        self._loaded.clear()
        self._cache.trim()

    def _forget_finished(self, state: Orchestration) -> None:
        if state.closed_at is not None and state.finished:
            self._cache.drop(state.run)
        else:
            self._cache.weigh(state)
