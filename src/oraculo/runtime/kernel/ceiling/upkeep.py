"""The ceiling of a process that sends orders itself: fed by its own commits, and looked after here.

That is one that has the store to itself; so has one whose broker forgets, since that is its own memory. Where several
may share a store, one of them has the ceiling of the fleet (journal.py). Another process may end what was sent here, so
the states of what is with workers are read again from time to time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from oraculo.errors import StoreError
from oraculo.runtime.effects.owed import OwedOrder
from oraculo.runtime.flow.open_plans import open_limited
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling
from oraculo.runtime.kernel.ceiling.journal import JournalCeiling, OrderSender
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.kernel.states import States

log = structlog.get_logger("oraculo.ceiling")

UPKEEP_INTERVAL_S = 1.0


class CeilingUpkeep:
    """`rescore` lets out what may go now, the most urgent first."""

    def __init__(
        self,
        ceiling: ConcurrencyCeiling[OwedOrder],
        ports: KernelPorts,
        states: States,
        rescore: Callable[[], None],
    ) -> None:
        self._ceiling = ceiling
        self._store = ports.store
        self._broker = ports.broker
        self._states = states
        self._rescore = rescore

    async def prepare(self) -> None:
        """Before anything is sent: count what is with workers already, and is not sent again."""
        async for state in open_limited(self._store):
            self._ceiling.with_workers(state, self._broker.forgets)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_INTERVAL_S)
            try:
                await self._look()
            except StoreError as error:
                log.warning("upkeep of the ceiling skipped: store unavailable", error=str(error))

    async def _look(self) -> None:
        if not len(self._ceiling):
            return
        for run in self._ceiling.runs:
            state = await self._states.state(run)
            if state is not None:
                self._ceiling.settle(state)
        self._rescore()


def has_fleet_ceiling(ports: KernelPorts, options: KernelOptions) -> bool:
    """True where one process at a time keeps the ceiling for all that share a store. What a broker forgets is sent
    again by the process that recovers, which has to count it itself."""
    forgets = ports.broker.traits.volatile or ports.broker.forgets(options.tickets_queue)
    return options.ceiling is not None and ports.store.sharing is not None and not forgets


def ceiling_of(ports: KernelPorts, options: KernelOptions) -> ConcurrencyCeiling[OwedOrder] | None:
    """Return the ceiling that this process keeps alone, if it has one."""
    if options.ceiling is None or has_fleet_ceiling(ports, options):
        return None
    return ConcurrencyCeiling(options.ceiling)


def fleet_ceiling(ports: KernelPorts, options: KernelOptions, sender: OrderSender) -> JournalCeiling | None:
    """Return the part of this process in the ceiling of the fleet, if there is one; `sender` sends what it lets out
    while this process has the duty."""
    if options.ceiling is None or ports.store.sharing is None or not has_fleet_ceiling(ports, options):
        return None
    return JournalCeiling(ports.store.sharing, ports.clock, sender, options.ceiling)
