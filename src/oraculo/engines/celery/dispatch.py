"""What an orchestration owes the world, as Celery tasks: who executes them publishes to the worker's queue.

A task names tickets, it does not carry their messages: whoever runs it looks up what is still owed. So a task that
comes twice, or late, sends nothing that is not wanted any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

import structlog
from celery import Celery

from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.state import Orchestration
from oraculo.engines.celery.app import NOTICES
from oraculo.engines.celery.routes import START, orders_queue
from oraculo.ports.clock import Clock

log = structlog.get_logger("oraculo.celery")

AT_ONCE = 500  # tickets in one task
RETRY_FIRST, RETRY_MOST = 0.05, 5.0
CONFIRMED = 10.0  # seconds that Celery's broker may take to confirm a task
FORGOTTEN = timedelta(seconds=30)  # owed for so long: its task seems to be lost


class Dispatcher:
    """Takes the place of the performer in an engine whose deeds others do. `scheduled`: when tickets of Fluxo C go is
    for the scheduler to say (engines/celery/schedule.py), wherever it is."""

    ceiling = None  # it is the scheduler's

    def __init__(self, app: Celery, clock: Clock, *, scheduled: bool) -> None:
        self._app = app
        self._clock = clock
        self._scheduled = scheduled
        self._owed: dict[tuple[str, str, str], list[list[int]]] = {}
        self._arrived = asyncio.Event()
        self._sending = 0
        self._since: datetime | None = None
        self._announced: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="celery-sender")
        self.failing_since: datetime | None = None
        self.published = 0

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Publish(tickets):
                    if not self._scheduled or state.plan.flow is None:
                        self.order(state, tickets)
                case Notify(number, attempt):
                    self._add(("notificar", NOTICES, "avisos"), [state.run, number, attempt])

    def order(self, state: Orchestration, tickets: Iterable[tuple[int, int]]) -> None:
        """The messages of these (position, attempt)."""
        for position, attempt in tickets:
            task = state.plan.tasks[position]
            self._add((START[task.kind], orders_queue(task.queue), "ordens"), [state.run, position, attempt])

    def _add(self, key: tuple[str, str, str], what: list[int]) -> None:
        if not self.waiting:
            self._since = self._clock.now()
        self._owed.setdefault(key, []).append(what)
        self._arrived.set()

    def freed(self, _state: Orchestration) -> None:
        pass

    @property
    def waiting(self) -> int:
        return len(self._owed) + self._sending

    @property
    def oldest(self) -> datetime | None:
        """Since when something waits to be handed to Celery."""
        return self._since if self.waiting else None

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            owed, self._owed = self._owed, {}
            self._sending = len(owed)
            for (task, queue, argument), what in owed.items():
                for start in range(0, len(what), AT_ONCE):
                    await self.send(task, queue, {argument: what[start : start + AT_ONCE]})
                self._sending -= 1

    async def send(self, task: str, queue: str, arguments: dict[str, object]) -> None:
        """Returns when Celery's broker has it."""
        await self.announce([queue])
        pause = RETRY_FIRST
        while True:
            try:
                await self._in_thread(
                    self._app.send_task,
                    task,
                    kwargs=arguments,
                    queue=queue,
                    ignore_result=True,
                    timeout=CONFIRMED,
                    confirm_timeout=CONFIRMED,
                )
            except Exception as error:
                if self.failing_since is None:
                    self.failing_since = self._clock.now()
                    log.warning("Celery's broker does not take tasks", error=str(error) or type(error).__name__)
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_MOST)
            else:
                if self.failing_since is not None:
                    self.failing_since = None
                    log.info("Celery's broker takes tasks again")
                self.published += 1
                return

    async def announce(self, queues: Sequence[str], *, again: bool = False) -> None:
        """Workers that take every queue are told of these, once or `again`. Who does not hear it hears it later."""
        new = [queue for queue in queues if again or queue not in self._announced]
        self._announced.update(new)
        if new:
            with contextlib.suppress(Exception):
                await self._in_thread(self._app.control.broadcast, "oraculo_filas", arguments={"filas": new})

    async def _in_thread(self, what: Callable[..., object], *arguments: object, **options: object) -> None:
        """Celery's client blocks."""
        await asyncio.get_running_loop().run_in_executor(self._thread, partial(what, *arguments, **options))

    def confirmed(self, _run: int) -> list[tuple[int, int]]:
        return []

    def ended(self, _run: int) -> None:
        """Nothing is remembered of it."""

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
