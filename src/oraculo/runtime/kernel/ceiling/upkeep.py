"""The ceiling of a process that sends orders itself: fed by its own commits, and looked after here.

Where several processes share a store each keeps to its part of the ceiling. Another process may end what this one has
sent, so the states of what is with workers are read again from time to time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from oraculo.errors import StoreError
from oraculo.runtime.effects.owed import OwedOrder
from oraculo.runtime.flow.open_plans import open_plans
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.kernel.states import States

log = structlog.get_logger("oraculo.ceiling")

UPKEEP_INTERVAL_S = 1.0


class CeilingUpkeep:
    """`limit` of the ceiling is what all processes together may have with workers; `tickets_queue` is the queue that
    most orders go to; `rescore` lets out what may go now, the most urgent first."""

    def __init__(
        self,
        ceiling: ConcurrencyCeiling[OwedOrder],
        ports: KernelPorts,
        tickets_queue: str,
        states: States,
        rescore: Callable[[], None],
    ) -> None:
        self._ceiling = ceiling
        self._limit = ceiling.limit
        self._tickets_queue = tickets_queue
        self._store = ports.store
        self._sharing = ports.store.sharing
        self._broker = ports.broker
        self._states = states
        self._rescore = rescore

    async def prepare(self) -> None:
        """Before anything is sent: take this process's share, and count what is with workers already. Where others
        share the store, what was with workers before is counted by the processes that sent it."""
        await self._take_share()
        alone = self._sharing is None or self._broker.traits.volatile
        if alone and not self._broker.forgets(self._tickets_queue):
            async for state in open_plans(self._store):
                self._ceiling.with_workers(state, self._broker.forgets)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_INTERVAL_S)
            try:
                await self._look()
            except StoreError as error:
                log.warning("upkeep of the ceiling skipped: store unavailable", error=str(error))

    async def _look(self) -> None:
        await self._take_share()
        if not len(self._ceiling):
            return
        for run in self._ceiling.runs:
            state = await self._states.state(run)
            if state is not None:
                self._ceiling.settle(state)
        self._rescore()

    async def _take_share(self) -> None:
        """Each process keeps to its part, and has at least one."""
        if self._sharing is not None:
            members = len(await self._sharing.members())
            self._ceiling.limit = max(1, self._limit // max(1, members))


def ceiling_of(options: KernelOptions) -> ConcurrencyCeiling[OwedOrder] | None:
    """Return the ceiling that the options ask for, if they do."""
    return None if options.ceiling is None else ConcurrencyCeiling(options.ceiling)
