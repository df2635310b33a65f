"""The router before the kernel: commands for orchestrations that exist go to their workflows, as signals or updates;
all else, and what has no workflow any more, goes to the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import structlog
from temporalio.service import RPCError, RPCStatusCode

from oraculo.backoff import backoff
from oraculo.engines.temporal.commands import LocalCommand, is_for_workflow
from oraculo.engines.temporal.workflows import ASKED, Workflows
from oraculo.errors import EngineUnavailableError, StoreError, StoreUnavailableError
from oraculo.ports.clock import Clock
from oraculo.ports.store import Store
from oraculo.ports.work import EngineCommand, Fate, Outcome, Work
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.states import States

log = structlog.get_logger("oraculo.temporal")

FORWARD_RETRY_FIRST_S, FORWARD_RETRY_MAX_S = 0.1, 2.0
OVERDUE_AFTER, OVERDUE_MAX_RUNS = timedelta(minutes=1), 500


class WorkflowRouter:
    def __init__(self, queue: CommandQueue, states: States, workflows: Workflows, store: Store, clock: Clock) -> None:
        self._queue = queue
        self._states = states
        self._workflows = workflows
        self._store = store
        self._clock = clock
        self._forward: list[Work] = []  # for workflows; no caller waits for them
        self._forwards = asyncio.Event()

    async def submit(self, works: list[Work], *, piecewise: bool = False) -> list[Outcome]:
        """Return when it is durable: in the history of its workflow, or in the journal. What becomes of an answer is
        known when the workflow has read it, so here it counts as applied."""
        theirs = [work for work in works if is_for_workflow(work)]
        if not theirs:
            return await self._queue.submit(works, piecewise=piecewise)
        outcomes = dict(zip(map(id, theirs), await self._tell(theirs), strict=True))
        ours = [work for work in works if id(work) not in outcomes]
        outcomes |= zip(map(id, ours), await self._queue.submit(ours, piecewise=piecewise), strict=True)
        found = [outcomes[id(work)] for work in works]
        if not piecewise and any(outcome.fate is Fate.RETRY for outcome in found):
            raise StoreUnavailableError("an orchestration is between two states; try again")
        return found

    def enqueue(self, works: Sequence[Work]) -> None:
        """Queue work that no caller waits for, for its workflow or for the kernel."""
        theirs = [work for work in works if is_for_workflow(work)]
        self._queue.enqueue(works if not theirs else [work for work in works if not is_for_workflow(work)])
        if theirs:
            self._forward += theirs
            self._forwards.set()

    # -- loops -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Tell workflows of confirmations and outcomes of notices, again and again until they have heard of them."""
        pauses = backoff(FORWARD_RETRY_FIRST_S, FORWARD_RETRY_MAX_S)
        while True:
            await self._forwards.wait()
            self._forwards.clear()
            works, self._forward = self._forward, []
            groups = list(_groups(works).values())
            found = await asyncio.gather(
                *(self._tell_one(group[0].run, group) for group in groups), return_exceptions=True
            )
            failed = [(group, error) for group, error in zip(groups, found, strict=True) if not isinstance(error, list)]
            if not failed:
                pauses = backoff(FORWARD_RETRY_FIRST_S, FORWARD_RETRY_MAX_S)
                continue
            log.warning("workflows not told", orchestrations=len(failed), error=str(failed[0][1]))
            self._forward[:0] = [work for group, _ in failed for work in group]
            await asyncio.sleep(next(pauses))
            self._forwards.set()

    async def signal_overdue(self) -> None:
        """Signal overdue runs from time to time; begin a workflow anew that Temporal no longer has."""
        while True:
            try:
                for run in await self._overdue():
                    await self._tell_one(run, ())
            except StoreError as error:
                log.debug("overdue runs not signalled", error=str(error))
            await asyncio.sleep(OVERDUE_AFTER.total_seconds())

    async def _overdue(self) -> list[int]:
        shared = self._store.sharing
        if shared is not None:
            return await shared.overdue(OVERDUE_AFTER, OVERDUE_MAX_RUNS)
        before = self._clock.now() - OVERDUE_AFTER
        return [one.run for one in await self._store.live() if one.wake_at is not None and one.wake_at < before]

    # -- to a workflow -----------------------------------------------------------------------------------------------

    async def _tell(self, works: Sequence[Work]) -> list[Outcome]:
        """Tell each workflow; what belongs to none is dealt with as without workflows."""
        runs = await self._states.runs_of([work.correlation_id for work in works if not work.run])
        for work in works:
            work.run = work.run or runs.get(work.correlation_id, 0)
        told = await asyncio.gather(*(self._tell_one(group[0].run, group) for group in _groups(works).values()))
        outcomes = {id(work): outcome for found in told for work, outcome in found}
        return [outcomes[id(work)] for work in works]

    async def _tell_one(self, run: int, works: Sequence[Work]) -> list[tuple[Work, Outcome]]:
        known = await self._workflows.of(run) if run else None
        if known is not None:
            for last in (False, True):
                try:
                    return await self._workflows.send(known, run, works)
                except RPCError as error:
                    if error.status is not RPCStatusCode.NOT_FOUND:
                        raise EngineUnavailableError(f"Temporal refused: {error.message}") from error
                state = await self._states.state(run)
                if last or state is None or state.finished:
                    break
                await self._workflows.revive(state)
        outcomes = await self._queue.submit([_local(work) for work in works], piecewise=True)
        return list(zip(works, outcomes, strict=True))


def _groups(works: Sequence[Work]) -> dict[int, list[Work]]:
    """What one workflow is told at once; a command whose sender waits for the verdict is told alone."""
    groups: dict[int, list[Work]] = {}
    for work in works:
        groups.setdefault(-id(work) if isinstance(work.command, ASKED) else work.run, []).append(work)
    return groups


def _local(work: Work) -> Work:
    """Return the same work as a command for this process."""
    assert not isinstance(work.command, EngineCommand)
    return replace(work, command=LocalCommand(work.command), group=None)
