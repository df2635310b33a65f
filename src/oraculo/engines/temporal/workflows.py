"""The workflows of orchestrations: begin one, tell it something, ask it something, begin it again when it is gone."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import structlog
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from oraculo.core.commands import Approve, Cancel, PauseRun, Prioritise, RequeueTicket, ResumeRun, Signal
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Verdict
from oraculo.engines.temporal import calls
from oraculo.engines.temporal.calls import WorkflowRef
from oraculo.engines.temporal.connection import TemporalConnection
from oraculo.engines.temporal.decider import Launch
from oraculo.engines.temporal.messages import WorkflowInput, pack_batch, pack_command, wrap
from oraculo.errors import EngineUnavailableError, OraculoError
from oraculo.ports.clock import Clock
from oraculo.ports.work import FATE_OF, Fate, Outcome, Work
from oraculo.runtime.kernel.states import States

log = structlog.get_logger("oraculo.temporal")

CALLS_IN_FLIGHT = 100
REMEMBERED_MAX_WORKFLOWS = 50_000
ASKED = (
    Cancel,
    PauseRun,
    ResumeRun,
    Prioritise,
    Approve,
    Signal,
    RequeueTicket,
)  # commands whose sender wants to know what became of them


class Workflows:
    def __init__(self, connection: TemporalConnection, clock: Clock, states: States) -> None:
        self._connection = connection
        self._clock = clock
        self._states = states
        self._gate = asyncio.Semaphore(CALLS_IN_FLIGHT)
        self._known: OrderedDict[int, WorkflowRef] = OrderedDict()  # by run

    async def begin(self, launches: Sequence[Launch]) -> dict[int, OraculoError]:
        """Begin them all; return the runs that could not begin, and why."""
        found = await asyncio.gather(*(self._begin(one) for one in launches))
        return {one.state.run: error for one, error in zip(launches, found, strict=True) if error is not None}

    async def _begin(self, launch: Launch) -> EngineUnavailableError | None:
        """Begin one. A plan that is too large to travel, a retry with what it takes over, or a request that exists once
        is read from the journal; a workflow that does not find it there was never accepted, and gives way."""
        state = launch.state
        key = None if launch.key is None else (launch.key.key, launch.key.fingerprint)
        begin = WorkflowInput(state.run, launch.at, launch.started, 0, key, self._connection.marked)
        conflict = WorkflowIDConflictPolicy.FAIL
        if launch.in_steps or not calls.fits(begin.pack()):
            begin.started, begin.version = None, state.version
            conflict = WorkflowIDConflictPolicy.TERMINATE_EXISTING
        try:
            await self._start(state, begin, conflict)
        except WorkflowAlreadyStartedError:
            return EngineUnavailableError(f"{state.correlation_id!r} is being started by somebody else")
        except EngineUnavailableError as error:
            return error
        except RPCError as error:
            log.error("Temporal refused a workflow", correlation_id=state.correlation_id, error=str(error))
            return EngineUnavailableError(f"Temporal refused: {error.message}")
        return None

    async def revive(self, state: Orchestration) -> None:
        """Begin a workflow anew from the journal: Temporal lost it, or an operator terminated it, before the
        orchestration has ended."""
        log.warning("a workflow is gone and begins anew from the journal", correlation_id=state.correlation_id)
        begin = WorkflowInput(state.run, self._clock.now(), version=state.version, marked=self._connection.marked)
        await self._start(state, begin, WorkflowIDConflictPolicy.USE_EXISTING)

    async def _start(self, state: Orchestration, begin: WorkflowInput, conflict: WorkflowIDConflictPolicy) -> None:
        known, queue = self._remember(state), self._connection.address.task_queue
        call = partial(calls.begin, state, begin, queue, here=self._connection.works, conflict=conflict)
        async with self._gate:
            await self._connection.call(call, known.traceparent)

    def _remember(self, state: Orchestration) -> WorkflowRef:
        known = self._known[state.run] = calls.known(state)
        while len(self._known) > REMEMBERED_MAX_WORKFLOWS:
            self._known.popitem(last=False)
        return known

    async def of(self, run: int) -> WorkflowRef | None:
        """Return the workflow of an orchestration, None when there is no such orchestration."""
        known = self._known.get(run)
        if known is not None:
            return known
        state = self._states.cache.get(run) or await self._states.state(run)
        return None if state is None else self._remember(state)

    async def send(self, known: WorkflowRef, run: int, works: Sequence[Work]) -> list[tuple[Work, Outcome]]:
        """Tell a workflow; RPCError when Temporal has none of that id. A command that is ASKED comes alone, and its
        verdict is waited for; what becomes of anything else is known when the workflow has read it."""
        identity, trace = known
        applied = Outcome(Fate.APPLIED, Fate.APPLIED, run)
        command = works[0].command if works else None
        async with self._gate:
            if isinstance(command, ASKED):
                verdict = await self._connection.call(partial(calls.ask, identity, wrap(pack_command(command))), trace)
                return [(works[0], Outcome(FATE_OF[Verdict(verdict)], verdict, run))]
            for batch in calls.signal_batches(works):
                await self._connection.call(
                    partial(calls.signal, identity, pack_batch(batch, self._clock.now())), trace
                )
        return [(work, applied) for work in works]
