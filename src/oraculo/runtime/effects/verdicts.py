"""Verdicts that are owed: policies are asked beside other work, a run once at a time, and what they say is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from oraculo.core.state import Orchestration
from oraculo.ports.work import Work
from oraculo.runtime.policies.asking import Policies, PolicyBatch

log = structlog.get_logger("oraculo.policy")

BATCHES_MAX = 20  # asked at the same time


class Verdicts:
    """Asks for what states wait for. A stop does not wait for it: what is owed is asked for by the next process. What a
    run waits for in addition meanwhile is asked by the step that takes the report."""

    def __init__(self, policies: Policies, report: Callable[[list[Work]], None]) -> None:
        self._policies = policies
        self._report = report
        self._running: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(BATCHES_MAX)

    def take(self, state: Orchestration) -> None:
        if state.run in self._running:
            return
        known = self._policies.known(state)
        if known:
            self._report([Work(one, run=state.run) for one in known])
            return
        batches = self._policies.snapshot(state)
        if batches:
            self._running[state.run] = asyncio.create_task(self._ask(state.run, batches))

    async def _ask(self, run: int, batches: list[PolicyBatch]) -> None:
        try:
            async with self._room:
                found = [await self._policies.judge(run, batch) for batch in batches]
        except Exception:
            log.exception("asking the policies failed", run=run)
            return
        finally:
            self._running.pop(run, None)
        self._report([Work(one, run=run) for one in found])

    async def close(self) -> None:
        running = list(self._running.values())
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
