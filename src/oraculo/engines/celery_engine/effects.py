"""What an orchestration owes the world, as Celery tasks: the worker that runs one publishes to the collector's queue.

A task names tickets, it does not carry their messages: the worker that runs it looks up what is still owed. So a task
that comes twice, or late, sends nothing that is not wanted any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog
from celery import Celery

from oraculo.backoff import backoff
from oraculo.chunks import chunks_by_count
from oraculo.core.effects import AskPolicies, Begin, Effect, EndChildren, Evaluate, Notify, Publish, Recall
from oraculo.core.state import Orchestration
from oraculo.engines.celery_engine.routes import ANNOUNCE, NOTICES, START, orders_queue
from oraculo.ports.clock import Clock
from oraculo.ports.effects import EffectBacklog
from oraculo.ports.work import Work
from oraculo.runtime.effects.children import ChildRuns
from oraculo.runtime.effects.evaluations import Evaluations
from oraculo.runtime.effects.verdicts import Verdicts
from oraculo.runtime.policies.asking import Policies

log = structlog.get_logger("oraculo.celery")

TASK_MAX_TICKETS = 500
SEND_RETRY_FIRST_S, SEND_RETRY_MAX_S = 0.05, 5.0
SEND_TIMEOUT_S = 10.0  # that Celery's broker may take to confirm a task


@dataclass(frozen=True, slots=True)
class TaskKind:
    """Tickets and notices of one kind go together in one task."""

    task: str
    queue: str
    argument: str


class TaskSender:
    """Sends tasks, and keeps what waits to be sent, in the order of a single thread: Celery's client blocks."""

    def __init__(self, app: Celery, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._owed: dict[TaskKind, list[list[int]]] = {}
        self._arrived = asyncio.Event()
        self._sending = 0
        self._since: datetime | None = None
        self._announced: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="celery-sender")
        self.failing_since: datetime | None = None
        self._sent = 0

    def order(self, state: Orchestration, tickets: Iterable[tuple[int, int]]) -> None:
        """Queue the orders of these (position, attempt)."""
        for position, attempt in tickets:
            task = state.plan.tasks[position]
            kind = TaskKind(START[task.kind], orders_queue(task.queue), "ordens")
            self._add(kind, [state.run, position, attempt])

    def notice(self, run: int, number: int, attempt: int) -> None:
        """Queue this notice."""
        self._add(TaskKind("notificar", NOTICES, "avisos"), [run, number, attempt])

    def _add(self, kind: TaskKind, what: list[int]) -> None:
        if not self._owed and not self._sending:
            self._since = self._clock.now()
        self._owed.setdefault(kind, []).append(what)
        self._arrived.set()

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            owed, self._owed = self._owed, {}
            self._sending = len(owed)
            for kind, what in owed.items():
                for some in chunks_by_count(what, TASK_MAX_TICKETS):
                    await self.send(kind.task, kind.queue, {kind.argument: some})
                self._sending -= 1

    async def send(self, task: str, queue: str, arguments: dict[str, object]) -> None:
        """Return when Celery's broker has it."""
        await self._announce(queue)
        for pause in backoff(SEND_RETRY_FIRST_S, SEND_RETRY_MAX_S):
            try:
                await self._in_thread(
                    self._app.send_task,
                    task,
                    kwargs=arguments,
                    queue=queue,
                    ignore_result=True,
                    timeout=SEND_TIMEOUT_S,
                    confirm_timeout=SEND_TIMEOUT_S,
                )
                break
            except Exception as error:
                self._fails(error)
                await asyncio.sleep(pause)
        if self.failing_since is not None:
            self.failing_since = None
            log.info("Celery's broker takes tasks again")
        self._sent += 1

    def _fails(self, error: Exception) -> None:
        if self.failing_since is None:
            self.failing_since = self._clock.now()
            log.warning("Celery's broker does not take tasks", error=str(error) or type(error).__name__)

    async def _announce(self, queue: str) -> None:
        """Tell workers that take every queue of this one, once. A worker that misses it is told later, by beat."""
        if queue not in self._announced:
            self._announced.add(queue)
            with contextlib.suppress(Exception):
                await self._in_thread(self._app.control.broadcast, ANNOUNCE, arguments={"filas": [queue]})

    async def _in_thread(self, what: Callable[..., object], *arguments: object, **options: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, partial(what, *arguments, **options))

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def backlog(self, held_back: int = 0) -> EffectBacklog:
        waiting = len(self._owed) + self._sending
        return EffectBacklog(
            waiting=waiting,
            held_back=held_back,
            oldest=self._since if waiting else None,
            published=self._sent,
            failing_since=self.failing_since,
        )


class CeleryEffectRunner:
    """The effect runner of an engine whose effects are carried out by tasks. Orders of orchestrations that are
    `scheduled` are left to the ceiling of the whole fleet; `held_back` tells how many wait there, in the process that
    has it. Expressions are evaluated here, policies asked, and children begin and end here; `report` takes what that
    gives."""

    def __init__(
        self,
        sender: TaskSender,
        scheduled: Callable[[Orchestration], bool] = lambda _state: False,
        held_back: Callable[[], int] = lambda: 0,
        *,
        report: Callable[[list[Work]], None],
        children: ChildRuns,
        policies: Policies,
    ) -> None:
        self._sender = sender
        self._report = report
        self._children = children
        self._evaluations = Evaluations(report)
        self._verdicts = Verdicts(policies, report)
        self._scheduled = scheduled
        self._held_back = held_back

    def take_together(self, owed: Sequence[tuple[Orchestration, Sequence[Effect]]]) -> None:
        for state, effects in owed:
            self.take(state, effects)

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Publish(tickets):
                    if not self._scheduled(state):
                        self._sender.order(state, tickets)
                case Notify(number, attempt):
                    self._sender.notice(state.run, number, attempt)
                case Evaluate():
                    self._evaluations.take(state)
                case AskPolicies():
                    self._verdicts.take(state)
                case Recall():
                    pass  # a task looks up whether its orders may go
                case Begin(tickets):
                    self._children.begin(state, tickets, self._report)
                case EndChildren(tickets):
                    self._children.end(state, tickets, self._report)

    def settled(self, state: Orchestration) -> None:
        """Nothing: the ceiling of the fleet reads the journal."""

    def ended(self, run: int) -> None:
        """Nothing is kept of it."""

    def unrecorded(self, run: int) -> None:
        """Nothing: the worker that publishes records what is confirmed."""

    async def run(self) -> None:
        await self._sender.run()

    async def close(self) -> None:
        await self._evaluations.close()
        await self._verdicts.close()
        await self._children.close()
        self._sender.close()

    def backlog(self) -> EffectBacklog:
        return self._sender.backlog(self._held_back())
