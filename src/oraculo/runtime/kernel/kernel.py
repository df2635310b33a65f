"""The parts of an engine, joined: queue → commit loop → effects, timers, watchers, observers.

Which effects, timers, decider and guard there are is for the engine to say that assembles them (oraculo/engines). By
itself the kernel is the engine of ports/engine.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Self

import structlog

from oraculo.core.access import Actor
from oraculo.core.commands import Cancel, ConfirmDispatch
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.errors import BusyError, SettingsError, UnknownIdError
from oraculo.ports.effects import EffectSink
from oraculo.ports.engine import EngineStatus
from oraculo.ports.membership import Member
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.commit_loop import AfterCommit, CommitLoop
from oraculo.runtime.kernel.decider import CommitGuard, Decider
from oraculo.runtime.kernel.handler import Handler
from oraculo.runtime.kernel.open_runs import OpenRuns
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.kernel.recovery import Recovery
from oraculo.runtime.kernel.replica import Replica
from oraculo.runtime.kernel.states import States
from oraculo.runtime.kernel.takeover import TakeOver
from oraculo.runtime.kernel.timers import TimerLoop, wakes
from oraculo.runtime.kernel.transaction import Transaction
from oraculo.runtime.loops import Loop, Loops

log = structlog.get_logger("oraculo.engine")

STOP_PATIENCE_S = 20.0
DRAIN_POLL_S = 0.01


class Kernel:
    """`effects` carries out what is committed. `timers` wakes orchestrations in time; without it others do (another
    process, beat, workflows). `takeover_delay`: overdue for so long, this process wakes what others should have woken,
    and takes over from those that died; None leaves that to others. `decider` and `guard`: see kernel/decider.py.
    `answers` takes the answers of workers that came from a broker, the queue of this kernel by default."""

    def __init__(
        self,
        ports: KernelPorts,
        options: KernelOptions,
        queue: CommandQueue,
        states: States,
        effects: EffectSink,
        *,
        timers: TimerLoop | None = None,
        takeover_delay: timedelta | None = None,
        decider: Decider | None = None,
        guard: CommitGuard | None = None,
        answers: Callable[[list[Work]], Awaitable[list[Outcome]]] | None = None,
        stop_patience_s: float = STOP_PATIENCE_S,
    ) -> None:
        self._ports = ports
        self._queue = queue
        self._states = states
        self._effects = effects
        self._stop_patience_s = stop_patience_s
        self._answers = answers or partial(queue.submit, piecewise=True)
        self._open_runs = OpenRuns(options.max_open)
        self._recovery = Recovery(ports.store, ports.broker, effects, ports.watchers, self._open_runs, timers)
        self._replica = self._make_replica(options, takeover_delay)
        handler = Handler(ports.store, ports.clock, states, decider, guard, ports.policies.known)
        self._commits = CommitLoop(
            queue,
            handler,
            ports.clock,
            self._recovery.resolve,
            self._after_commit(handler, timers),
            [] if self._replica is None else [self._replica.store_failed],
        )
        self._before_recovery: list[Callable[[], Awaitable[None]]] = []
        self._loops = Loops()
        self.add("commits", self._commits.run)
        self.add("effects", effects.run)
        if timers is not None:
            self.add("timers", timers.run)
        if self._replica is not None:
            self.add("replica", self._replica.run)
        self._ready = False

    # -- assembly ----------------------------------------------------------------------------------------------------

    def add(self, name: str, loop: Loop, *, prepare: Callable[[], Awaitable[None]] | None = None) -> None:
        """Add a part: its loop runs while the engine does; `prepare` is awaited before anything is sent again."""
        self._loops.add(name, loop)
        if prepare is not None:
            self._before_recovery.append(prepare)

    def _make_replica(self, options: KernelOptions, takeover_delay: timedelta | None) -> Replica | None:
        ports = self._ports
        shared = ports.store.sharing
        if shared is None:
            return None
        takeover = None
        if takeover_delay is not None:
            takeover = TakeOver(
                shared, options.name, self._recovery.send_again, self._wake, takeover_delay, ports.cache
            )
        return Replica(
            shared,
            options.name,
            options.lease,
            ports.clock,
            ports.watchers,
            joined=self._joined,
            opened=self._opened,
            takeover=takeover,
        )

    def _after_commit(self, handler: Handler, timers: TimerLoop | None) -> list[AfterCommit]:
        """Who is told of a commit, in this order. What is owed goes out first; what is in memory is let go last."""
        told: list[AfterCommit] = [self._carry_out, self._open_runs.committed]
        if timers is not None:
            told.append(timers.committed)
        told += [self._tell_watchers, self._ports.observers.committed, handler.release]
        if timers is not None and self._replica is not None:
            told.append(partial(timers.rearm_early_wakes, cache=self._states.cache))
        return told

    def _carry_out(self, transaction: Transaction) -> None:
        effects = self._effects
        for done in transaction.steps:
            if done.effects:
                effects.take(done.state, done.effects)
            if done.state.plan.profile.has_ceiling:
                effects.settled(done.state)
        for closed in transaction.closed:
            effects.ended(closed.state.run)

    def _tell_watchers(self, transaction: Transaction) -> None:
        watchers = self._ports.watchers
        if watchers.any_watch:
            for done in transaction.steps:
                watchers.changed(done.state.run)
        for closed in transaction.closed:
            watchers.ended(closed.state.run, closed.result)

    def _wake(self, runs: Sequence[int]) -> None:
        self._queue.enqueue(wakes(runs))

    def _joined(self, member: Member) -> None:
        self._ports.numbers.node = member.slot

    def _opened(self, count: int) -> None:
        self._open_runs.count = count

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> Self:
        await self._recover()
        self._loops.start()
        self._ready = True
        return self

    async def _recover(self) -> None:
        ports = self._ports
        shared = ports.store.sharing
        if self._replica is not None:
            await self._replica.join()
        else:
            last = await ports.store.last_instant()
            if last is not None:
                ports.clock.not_before(last)
        for prepare in self._before_recovery:
            await prepare()
        if self._replica is not None:
            await self._replica.take_over()
        self._open_runs.queues.update(await ports.store.queues())
        if ports.broker.traits.volatile and shared is not None and len(await shared.members()) > 1:
            raise SettingsError("ORACULO_BROKER", "memory://", "other processes work on this store: all need a server")
        if shared is None or ports.broker.traits.volatile:
            await self._recovery.take_all()

    async def stop(self, patience: float | None = None) -> None:
        self._ready = False
        try:
            async with asyncio.timeout(self._stop_patience_s if patience is None else patience):
                await self.drained()
        except TimeoutError:
            log.warning("stopped with work left; the journal has it", waiting=len(self._queue))
        await self._loops.stop()
        await self._effects.close()
        if self._replica is not None:
            await self._replica.stop()
        self._ports.observers.flush()
        self._queue.refuse_all(BusyError("the orchestrator is stopping"))

    async def drained(self) -> None:
        while not self._queue.idle or self._effects.backlog().waiting:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_POLL_S)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def is_ready(self) -> bool:
        return self._ready

    def status(self) -> EngineStatus:
        return EngineStatus(
            ready=self._ready,
            open=self._open_runs.count,
            effects=self._effects.backlog(),
            queues=frozenset(self._open_runs.queues),
            store_failing_since=self._commits.store_failing_since,
            membership=None if self._replica is None else self._replica.membership(),
        )

    # -- the way in --------------------------------------------------------------------------------------------------

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        return await self._queue.submit(works, piecewise=piecewise)

    async def answer(self, works: list[Work]) -> list[Outcome]:
        return await self._answers(works)

    def enqueue(self, works: Sequence[Work]) -> None:
        self._queue.enqueue(works)

    def admit(self, count: int = 1) -> None:
        self._open_runs.admit(count)

    def has_room(self) -> bool:
        return self._open_runs.has_room()

    def next_run(self) -> int:
        return self._ports.numbers.next(self._ports.clock.now())

    async def cancel(self, correlation_id: str, reason: str = "", *, actor: Actor, undo: bool = False) -> Outcome:
        return await cancelled(self.submit, correlation_id, reason, actor, undo)

    async def send_again(self, runs: Sequence[int]) -> None:
        await self._recovery.send_again(runs)

    # -- the way out -------------------------------------------------------------------------------------------------

    async def run_of(self, correlation_id: str) -> int | None:
        return await self._states.run_of(correlation_id)

    async def state_of(self, correlation_id: str) -> Orchestration | None:
        run = await self._states.run_of(correlation_id)
        if run is None:
            return None
        unrecorded = self._effects.unrecorded(run)
        if unrecorded is not None:
            await self.submit([Work(ConfirmDispatch(unrecorded), run=run)])  # after what was handed in before
        return await self._states.state(run)

    async def state(self, run: int) -> Orchestration | None:
        return await self._states.state(run)

    async def result(self, run: int) -> bytes | None:
        return await self._states.result(run)

    def only_counts(self, works: Sequence[Work]) -> bool:
        return self._states.only_counts(works)

    def still_owed(self, run: int, tickets: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        return self._states.still_owed(run, tickets)

    async def filter_owed(
        self, run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool
    ) -> Sequence[tuple[int, int]]:
        return await self._states.filter_owed(run, tickets, running_too=running_too)


async def cancelled(
    submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
    correlation_id: str,
    reason: str,
    actor: Actor,
    undo: bool = False,
) -> Outcome:
    """Submit the command that cancels an orchestration; UnknownIdError when there is none of that id."""
    outcome = (await submit([Work(Cancel(reason, actor.id, undo), correlation_id)]))[0]
    if outcome.fate is Fate.UNKNOWN:
        raise UnknownIdError("orchestration", local_name(correlation_id))
    return outcome
