"""Mutants of requests that exist once: what is merged, how long, and what is kept of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

from oraculo.core.uniqueness import UniqueMode, Uniqueness
from oraculo.ports.journal import LockedSnapshot, LockRequest
from oraculo.ports.unique_keys import KeyHolder, MergedRequest
from oraculo.runtime.kernel.decider import CoreDecider
from oraculo.runtime.kernel.transaction import Transaction
from oraculo.simulation.mutants import Mutant, patched
from oraculo.simulation.shared_store import ModelSharedStore

_KINDS = ("unique-unmasked", "unique-masked")
_merges, _hold, _begin = Uniqueness.merges, Transaction.hold, ModelSharedStore.begin


def every_request_begins_a_run() -> AbstractContextManager[None]:
    return patched((CoreDecider, "_merged", lambda *_: None))


def windows_end_with_the_run() -> AbstractContextManager[None]:
    def merges(self: Uniqueness, since: datetime, is_open: bool, now: datetime) -> bool:
        return _merges(self, since, is_open, now) and (is_open or self.mode is UniqueMode.FOREVER)

    return patched((Uniqueness, "merges", merges))


def ended_runs_take_requests_in() -> AbstractContextManager[None]:
    def merges(self: Uniqueness, since: datetime, is_open: bool, now: datetime) -> bool:
        return _merges(self, since, is_open, now) or self.mode is UniqueMode.OPEN

    return patched((Uniqueness, "merges", merges))


def windows_never_end() -> AbstractContextManager[None]:
    def merges(self: Uniqueness, since: datetime, is_open: bool, now: datetime) -> bool:
        return _merges(self, since, is_open, now) or self.mode is UniqueMode.WINDOW

    return patched((Uniqueness, "merges", merges))


def merged_requests_are_forgotten() -> AbstractContextManager[None]:
    def add(_self: KeyHolder, _request: MergedRequest) -> None:
        return

    return patched((KeyHolder, "add", add))


def keys_are_forgotten_with_their_transaction() -> AbstractContextManager[None]:
    """The run that begins holds its key in memory only."""

    def hold(self: Transaction, state: Any) -> None:
        _hold(self, state)
        self.batch.holders.pop(state.run, None)

    return patched((Transaction, "hold", hold))


def keys_are_read_without_a_lock() -> AbstractContextManager[None]:
    """Two processes may both see that no run holds a key."""

    async def begin(self: ModelSharedStore, asked: LockRequest) -> LockedSnapshot:
        held = (await self._database.store.begin(LockRequest({}, [], [], asked.unique))).holders if asked.unique else {}
        snapshot = await _begin(self, replace(asked, unique=[]))
        return replace(snapshot, holders=held)

    return patched((ModelSharedStore, "begin", begin))


MUTANTS = [
    Mutant("every request that exists once begins a run", every_request_begins_a_run, _KINDS, 10),
    Mutant("a window ends with its run", windows_end_with_the_run, _KINDS, 40),
    Mutant("ended runs take requests in", ended_runs_take_requests_in, _KINDS, 40),
    Mutant("windows never end", windows_never_end, _KINDS, 40),
    Mutant("merged requests are forgotten", merged_requests_are_forgotten, _KINDS, 20),
    Mutant("keys are forgotten with their transaction", keys_are_forgotten_with_their_transaction, _KINDS, 20),
    Mutant("keys are read without a lock", keys_are_read_without_a_lock, _KINDS, 150),
]
