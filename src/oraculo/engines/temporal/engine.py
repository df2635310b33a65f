"""The engine `temporal`: requests become workflows, answers become signals, and what the workflows make true is written
to the journal and carried out.

A router stands before the kernel, and a decider and a guard of its own inside. What a request may be, the transaction
that many share, the broker and the watchers are the kernel's; there is no timer, because workflows have their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

from oraculo.core.access import Actor
from oraculo.core.state import Orchestration
from oraculo.engines.temporal.activities import activities_of
from oraculo.engines.temporal.codec import converter_of
from oraculo.engines.temporal.connection import Address, TemporalConnection
from oraculo.engines.temporal.decider import WorkflowDecider, WorkflowStarter
from oraculo.engines.temporal.effects import IdempotentEffectRunner
from oraculo.engines.temporal.journal_activities import JournalActivities
from oraculo.engines.temporal.router import WorkflowRouter
from oraculo.engines.temporal.workflows import Workflows
from oraculo.ports.engine import EngineStatus, Outage
from oraculo.ports.work import Outcome, Work
from oraculo.runtime.kernel.ceiling.upkeep import CeilingUpkeep, ceiling_of, fleet_ceiling
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.kernel import Kernel, cancelled
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.kernel.states import States

if TYPE_CHECKING:
    from oraculo.engines.temporal.tracing import Tracing


def temporal_engine(
    ports: KernelPorts, options: KernelOptions, address: Address, tracing: Tracing | None = None
) -> TemporalEngine:
    """Assemble an engine that runs workflows, too, and looks after those that Temporal has lost."""
    engine = TemporalEngine(ports, options, address, tracing)
    engine.kernel.add("temporal", partial(engine.connection.run, activities_of(engine.activities)))
    engine.kernel.add("overdue", engine.router.signal_overdue)
    fleet = fleet_ceiling(ports, options, engine.effects)
    if fleet is not None:
        engine.effects.held_back_by(lambda: fleet.held_back)
        engine.kernel.add("ceiling of the fleet", fleet.run)
    return engine


def temporal_front(
    ports: KernelPorts, options: KernelOptions, address: Address, tracing: Tracing | None = None
) -> TemporalEngine:
    """Assemble an engine that begins workflows and tells them things; other processes run them."""
    engine = TemporalEngine(ports, options, address, tracing)
    engine.kernel.add("temporal", engine.connection.run)
    return engine


class TemporalEngine:
    """The kernel behind a router to workflows. Whether workflows run in this process is for the assembly to say."""

    def __init__(
        self, ports: KernelPorts, options: KernelOptions, address: Address, tracing: Tracing | None = None
    ) -> None:
        queue, states, ceiling = CommandQueue(), States(ports.store), ceiling_of(ports, options)
        self.connection = TemporalConnection(address, ports.clock, options.name, tracing, converter_of(ports.seal))
        workflows = Workflows(self.connection, ports.clock, states)
        self.router = WorkflowRouter(queue, states, workflows, ports.store, ports.clock)
        self.effects = effects = IdempotentEffectRunner(
            ports, options, self.router.enqueue, states.still_owed, states.filter_owed, states.look_at, ceiling
        )
        by_hand = ports.signatures is None or not ports.signatures.answers_signed
        self.activities = JournalActivities(
            ports.store, ports.clock, queue, states, effects, ports.tokens, by_hand=by_hand
        )
        decider = WorkflowDecider(states.cache)
        guard = WorkflowStarter(decider, workflows.begin)
        self.kernel = Kernel(ports, options, queue, states, effects, decider=decider, guard=guard)
        self.kernel.add("forward", self.router.run)
        if ceiling is not None:
            upkeep = CeilingUpkeep(ceiling, ports, states, effects.rescore)
            self.kernel.add("ceiling", upkeep.run, prepare=upkeep.prepare)

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> Self:
        await self.kernel.start()
        return self

    async def drained(self) -> None:
        await self.kernel.drained()

    async def stop(self, patience: float | None = None) -> None:
        await self.connection.stop_working()
        await self.kernel.stop(patience)

    def is_ready(self) -> bool:
        return self.kernel.is_ready()

    def status(self) -> EngineStatus:
        since = self.connection.failing_since
        outage = None if since is None else Outage("temporal", self.connection.address.target, since)
        return replace(self.kernel.status(), outage=outage)

    # -- the way in --------------------------------------------------------------------------------------------------

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        return await self.router.submit(works, piecewise=piecewise)

    async def answer(self, works: list[Work]) -> list[Outcome]:
        return await self.router.submit(works, piecewise=True)

    def enqueue(self, works: Sequence[Work]) -> None:
        self.router.enqueue(works)

    def admit(self, count: int = 1) -> None:
        self.kernel.admit(count)

    def has_room(self) -> bool:
        return self.kernel.has_room()

    def next_run(self) -> int:
        return self.kernel.next_run()

    async def cancel(self, correlation_id: str, reason: str = "", *, actor: Actor, undo: bool = False) -> Outcome:
        return await cancelled(self.submit, correlation_id, reason, actor, undo)

    async def send_again(self, runs: Sequence[int]) -> None:
        await self.kernel.send_again(runs)

    # -- the way out -------------------------------------------------------------------------------------------------

    async def run_of(self, correlation_id: str) -> int | None:
        return await self.kernel.run_of(correlation_id)

    async def state_of(self, correlation_id: str) -> Orchestration | None:
        return await self.kernel.state_of(correlation_id)

    async def state(self, run: int) -> Orchestration | None:
        return await self.kernel.state(run)

    async def result(self, run: int) -> bytes | None:
        return await self.kernel.result(run)

    def only_counts(self, works: Sequence[Work]) -> bool:
        return self.kernel.only_counts(works)

    def still_owed(self, run: int, tickets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        return self.kernel.still_owed(run, tickets)

    async def filter_owed(
        self, run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool
    ) -> Sequence[tuple[int, int]]:
        return await self.kernel.filter_owed(run, tickets, running_too=running_too)
