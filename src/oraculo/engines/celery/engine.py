"""The engine of a process among Celery workers: it steps the core as the local one does, and leaves the deeds to tasks.

`oraculo up` runs it to take requests and to hand over the answers of workers, which are plain JSON, to the tasks
`resultado_coleta` and `resultado_execucao`; every process of a Celery worker runs it to execute tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Self

from oraculo.core.commands import RecordResult
from oraculo.core.vocabulary import Kind
from oraculo.engines.celery.app import app, verify
from oraculo.engines.celery.dispatch import Dispatcher
from oraculo.engines.celery.routes import results_queue
from oraculo.engines.celery.schedule import Scheduler
from oraculo.engines.local import LocalEngine
from oraculo.ports.notifier import Notifier
from oraculo.ports.sharing import sharing
from oraculo.runtime.intake import Submit
from oraculo.runtime.loops import for_ever
from oraculo.runtime.work import Fate, Outcome, Work
from oraculo.wire import names

AT_ONCE = 512 * 1024  # bytes of messages in one task
STOP = 5.0  # seconds; Celery ends a worker that takes much longer, and what is left undone is in the journal


class CeleryEngine(LocalEngine):
    minds = False  # the sweep does
    grace = timedelta(seconds=5)  # unless there is none: beat may not run
    performer: Dispatcher  # type: ignore[assignment]
    scheduler: Scheduler | None = None  # of a process whose duty it may be

    def _make_performer(self, _notifier: Notifier | None) -> Dispatcher:  # type: ignore[override]
        verify(app)
        return Dispatcher(app, self.clock, scheduled=self._ceiling is not None)

    async def start(self) -> Self:
        await super().start()
        store = sharing(self.store)
        if self._ceiling is not None and store is not None and not self._passive:
            self.scheduler = Scheduler(store, self.clock, self.performer, self._ceiling)
            self._tasks.append(asyncio.create_task(for_ever(self.scheduler.run), name="scheduler"))
        return self

    @property
    def held_back(self) -> int:
        return 0 if self.scheduler is None else self.scheduler.held_back

    def _submit_of(self, queue: str) -> Submit:
        return self.hand_over if queue == names.RESULTS else super()._submit_of(queue)

    async def hand_over(self, works: list[Work]) -> list[Outcome]:
        """Answers become tasks, as they came. Those that are too large for a task, or cannot be read, are dealt with
        here. Durable when it returns."""
        ours = [work for work in works if not _fits(work)]
        outcomes = dict(zip(map(id, ours), await self.submit(ours, piecewise=True), strict=True))
        for task, messages in _by_type([work for work in works if id(work) not in outcomes]).items():
            for some in _parcels(messages):
                await self.performer.send(task, results_queue(task), {"mensagens": some})
        return [outcomes.get(id(work)) or Outcome(Fate.APPLIED) for work in works]

    async def stop(self, patience: float = STOP) -> None:
        await super().stop(patience)


def _fits(work: Work) -> bool:
    return isinstance(work.command, RecordResult) and len(work.body) <= AT_ONCE


def _by_type(works: Sequence[Work]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for work in works:
        if isinstance(work.command, RecordResult):
            message = {"corpo": work.body.decode(), "fila": work.queue, "broker": work.broker}
            found.setdefault(_task_of(work.command), []).append(message)
    return found


def _task_of(answer: RecordResult) -> str:
    return "resultado_execucao" if answer.kind is Kind.EXECUCAO else "resultado_coleta"


def _parcels(messages: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    parcels: list[list[dict[str, str]]] = [[]]
    size = 0
    for message in messages:
        length = len(message["corpo"])
        if parcels[-1] and size + length > AT_ONCE:
            parcels.append([])
            size = 0
        parcels[-1].append(message)
        size += length
    return parcels
