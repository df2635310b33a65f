"""Evaluations that are owed: too long for the event loop, or asked by a workflow. Each runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from oraculo.core.state import Orchestration
from oraculo.ports.work import EvaluatedTasks, Work
from oraculo.runtime.evaluation import Snapshot, evaluate, evaluate_inline, snapshot

log = structlog.get_logger("oraculo.evaluate")


class Evaluations:
    """Evaluates what states ask for and reports it. A run is evaluated once at a time; what it asks meanwhile is asked
    again by the step that takes the report."""

    def __init__(self, report: Callable[[list[Work]], None]) -> None:
        self._report = report
        self._running: dict[int, asyncio.Task[None]] = {}

    def take(self, state: Orchestration) -> None:
        if state.run in self._running:
            return
        found = evaluate_inline(state)
        if found:
            self._report([Work(EvaluatedTasks(found), run=state.run)])
            return
        asked = snapshot(state)
        if asked is not None:
            self._running[state.run] = asyncio.create_task(self._evaluate(state.run, asked))

    async def _evaluate(self, run: int, asked: Snapshot) -> None:
        try:
            found = await asyncio.to_thread(evaluate, asked)
        except Exception:
            log.exception("evaluation failed", run=run)
            return
        finally:
            self._running.pop(run, None)
        self._report([Work(EvaluatedTasks(found), run=run)])

    async def close(self) -> None:
        running = list(self._running.values())
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def __len__(self) -> int:
        return len(self._running)
