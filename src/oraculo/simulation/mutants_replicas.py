"""Mutants of several processes on one database: leases, fencing, taking over, debts, the clock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta

from oraculo.adapters.clock import MonotonicClock
from oraculo.core.replay import rebuild
from oraculo.ports.journal import LockedSnapshot, LockRequest
from oraculo.ports.membership import Member
from oraculo.ports.work import Work
from oraculo.runtime.kernel.handler import Handler
from oraculo.runtime.kernel.replica import Replica
from oraculo.runtime.kernel.takeover import OVERDUE_MAX_RUNS, TakeOver
from oraculo.simulation.mutants import Mutant, patched
from oraculo.simulation.shared_store import ModelSharedStore

_KINDS = ("replicas-unmasked", "replicas-masked")
_MASKED = ("replicas-masked",)
_rescue, _begin = ModelSharedStore.rescue, ModelSharedStore.begin


def fencing_is_ignored() -> AbstractContextManager[None]:
    return patched((ModelSharedStore, "_fence", lambda self: self._member))


def taken_over_twice() -> AbstractContextManager[None]:
    """A dead member stays on the list."""

    async def rescue(self: ModelSharedStore) -> tuple[list[Member], list[int]]:
        dead, runs = await _rescue(self)
        self._database.members |= {one.slot: one for one in dead}
        return dead, runs

    return patched((ModelSharedStore, "rescue", rescue))


def never_taken_over() -> AbstractContextManager[None]:
    async def look(self: TakeOver) -> None:
        if overdue := await self._store.overdue(self._delay, OVERDUE_MAX_RUNS):
            self._wake(overdue)

    return patched((TakeOver, "look", look))


def a_lease_is_not_waited_for() -> AbstractContextManager[None]:
    async def rescue(self: ModelSharedStore) -> tuple[list[Member], list[int]]:
        members = self._database.members
        for slot, one in members.items():
            members[slot] = Member(one.name, slot, one.epoch, one.joined_at, one.lease_until - timedelta(seconds=2))
        return await _rescue(self)

    return patched((ModelSharedStore, "rescue", rescue))


def debts_are_forgotten() -> AbstractContextManager[None]:
    """The dead are gone, and with them what they owed."""

    async def rescue(self: ModelSharedStore) -> tuple[list[Member], list[int]]:
        dead, _ = await _rescue(self)
        return dead, []

    return patched((ModelSharedStore, "rescue", rescue))


def debts_are_not_sent() -> AbstractContextManager[None]:
    async def look(self: TakeOver) -> None:
        await self._store.rescue()
        if overdue := await self._store.overdue(self._delay, OVERDUE_MAX_RUNS):
            self._wake(overdue)

    return patched((TakeOver, "look", look))


def nobody_wakes_for_the_dead() -> AbstractContextManager[None]:
    async def look(self: TakeOver) -> None:
        _, owing = await self._store.rescue()
        self._owing += owing
        if self._owing:
            await self._send_again(self._owing)
            self._owing = []

    return patched((TakeOver, "look", look))


def who_is_out_never_joins_again() -> AbstractContextManager[None]:
    async def rejoin(self: Replica) -> None:
        return

    return patched((Replica, "_rejoin", rejoin))


def what_others_wrote_is_not_learnt() -> AbstractContextManager[None]:
    """Once an orchestration is in memory it is believed."""

    async def load(self: Handler, works: Sequence[Work]) -> LockedSnapshot:
        found = await self._store.begin(self._decider.locks(works))
        for run, recorded in found.news.items():
            if self._cache.get(run) is None:
                self._cache.put(rebuild(recorded))
        return found

    return patched((Handler, "_load", load))


def each_goes_by_its_own_clock() -> AbstractContextManager[None]:
    async def begin(self: ModelSharedStore, request: LockRequest) -> LockedSnapshot:
        found = await _begin(self, request)
        found.at = None
        return found

    return patched((MonotonicClock, "follow", lambda _self, _at: None), (ModelSharedStore, "begin", begin))


MUTANTS = [
    Mutant("fencing is ignored", fencing_is_ignored, _KINDS, 40),
    Mutant("a dead replica is taken over from twice", taken_over_twice, _KINDS, 20),
    Mutant("nobody takes over", never_taken_over, _KINDS, 40),
    Mutant("a lease is not waited for", a_lease_is_not_waited_for, _KINDS, 20),
    Mutant("debts of the dead are forgotten", debts_are_forgotten, _KINDS, 40),
    Mutant("debts of the dead are not sent", debts_are_not_sent, _KINDS, 40),
    Mutant("nobody wakes for the dead", nobody_wakes_for_the_dead, _MASKED, 40),
    Mutant("who is out never joins again", who_is_out_never_joins_again, _KINDS, 40),
    Mutant("what others wrote is not learnt", what_others_wrote_is_not_learnt, _KINDS, 40),
    Mutant("each replica goes by its own clock", each_goes_by_its_own_clock, _KINDS, 40),
]
