"""What a process of a Celery worker carries: an event loop in a thread of its own, with store, broker and core on it.

Celery forks its processes, and tasks are plain functions: so everything is opened in the process that needs it, as soon
as it is there, and stays open from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Self, TypeVar

import structlog
from celery import signals

from oraculo import settings
from oraculo.bootstrap import Oraculo, Role
from oraculo.core.cognitive import TIPO
from oraculo.core.commands import Wake
from oraculo.core.effects import Effect, Notify, Publish, owed_effects
from oraculo.core.state import NoticePhase, Orchestration, fold
from oraculo.engines.celery.dispatch import FORGOTTEN
from oraculo.engines.celery.routes import PREFIX
from oraculo.errors import StoreUnavailableError
from oraculo.ports.sharing import SharedStore, sharing
from oraculo.runtime.perform import Performer
from oraculo.runtime.replica import OVERDUE
from oraculo.runtime.work import Work

log = structlog.get_logger("oraculo.celery")

T = TypeVar("T")
Still = Callable[[Orchestration, list[tuple[int, int]]], list[Effect]]  # of these, what is wanted now
PATIENCE = 20.0  # seconds that a task waits for the store or the broker, before Celery tries it again later
HANGS = 50.0  # seconds after which a task is given up and tried again, whatever it waits for
AT_ONCE = 500
LOOK_FIRST, LOOK_MOST = 0.1, 1.0  # seconds between two attempts to write to a store that is away
LEAVE = 10.0  # seconds to close everything
MOST_PROCESSES = 64  # that look for a port of their own for metrics
CONFIRM = 1.0  # of them to record what was published: what is not would be published again


class Host(Oraculo):
    """`engine` steps the core, `performer` does the deeds that tasks ask for."""

    def __init__(self) -> None:
        chosen = settings.for_celery(settings.load())
        name = f"{chosen.replica_name or socket.gethostname()}:celery:{os.getpid()}"
        super().__init__(replace(chosen, replica_name=name), role=Role.TASKS)
        self.performer: Performer
        self._again: asyncio.Task[None]
        self._ports = contextlib.AsyncExitStack()
        self._sent_again: dict[int, float] = {}  # run → when the sweep of this process did it last

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        engine = self.engine
        self.performer = Performer(
            engine.broker,
            self.notifier,
            self.clock,
            engine.enqueue,
            engine.store.result,
            engine.handler.still_owed,
            engine.writer,
            retry_rate=self.settings.retry_rate,
        )
        self._again = asyncio.create_task(self.performer.run())  # what had to be postponed
        if self.settings.metrics_port is not None:
            await self._serve_metrics(self.settings.metrics_port)
        return self

    async def _serve_metrics(self, first: int) -> None:
        """What this process saw: each process of a worker takes the next port that is free."""
        for port in range(first, first + MOST_PROCESSES) if first else (0,):
            try:
                taken = await self._ports.enter_async_context(self.metrics_on(port))
            except OSError:
                continue
            log.info("metrics", url=f"http://{self.settings.host}:{taken}/metrics")
            return
        log.warning("no port is free for metrics", first=first, last=first + MOST_PROCESSES - 1)

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONFIRM):
                while self.performer.waiting:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        self._again.cancel()
        await self._ports.aclose()
        await self.performer.close()
        await super().__aexit__()

    # -- what tasks ask for ------------------------------------------------------------------------------------------

    async def record(self, works: list[Work]) -> dict[str, int]:
        """Answers, durable when it returns; fate → how many."""
        async with asyncio.timeout(PATIENCE):
            outcomes = await _patiently(lambda: self.engine.submit(works))
        return dict(Counter(outcome.fate.value for outcome in outcomes))

    async def publish(self, orders: Sequence[Sequence[int]]) -> int:
        """The messages of these (run, position, attempt), as far as they are still owed."""
        return await self._perform(orders, _still_owed, PATIENCE)

    async def notify(self, notices: Sequence[Sequence[int]]) -> int:
        """These (run, notice, attempt), each tried once."""
        return await self._perform(notices, _still_due, HANGS)

    async def _perform(self, wanted: Sequence[Sequence[int]], still: Still, patience: float) -> int:
        by_run: dict[int, list[tuple[int, int]]] = {}
        for run, number, attempt in wanted:
            by_run.setdefault(run, []).append((number, attempt))
        done, waiting = 0, self.performer.postponed
        async with asyncio.timeout(patience):
            loaded = await _patiently(lambda: self.engine.store.load(list(by_run)))
            for run, recorded in loaded.items():
                state = fold((one.at, one.events) for one in recorded)
                effects = still(state, [one for one in by_run[run] if (run, *one) not in waiting])
                done += len(effects)
                self.performer.take(state, effects)
            await self.performer.flush()
        return done

    async def sweep(self) -> dict[str, int]:
        """What others left undone: deadlines, the debts of dead processes, and tasks that Celery's broker forgot."""
        store = self._sharing
        dead, owing = await store.rescue()
        for member in dead:
            log.warning("took over from a dead process", replica=member.name, slot=member.slot, owing=len(owing))
        forgotten = self._not_lately(await store.owing(FORGOTTEN, AT_ONCE, TIPO))  # plans are the scheduler's
        for recorded in (await store.load([*owing, *forgotten])).values():
            state = fold((one.at, one.events) for one in recorded)
            self.engine.performer.take(state, owed_effects(state))
        overdue = await store.overdue(timedelta(), OVERDUE)  # nobody else looks after deadlines
        await self.engine.submit([Work(Wake(), run=run) for run in overdue])
        return {"mortos": len(dead), "devidas": len(owing) + len(forgotten), "vencidas": len(overdue)}

    def _not_lately(self, runs: Sequence[int]) -> list[int]:
        """While a broker is away much is owed for long: to send it again and again would only pile it up."""
        now = asyncio.get_running_loop().time()
        since = now - FORGOTTEN.total_seconds()
        self._sent_again = {run: at for run, at in self._sent_again.items() if at > since}
        chosen = [run for run in runs if run not in self._sent_again]
        self._sent_again |= dict.fromkeys(chosen, now)
        return chosen

    async def announce(self) -> int:
        """Every worker hears which queues there are; how many."""
        queues = [PREFIX + queue for queue in await self.engine.store.queues()]
        await self.engine.performer.announce(queues, again=True)  # type: ignore[attr-defined]
        return len(queues)

    @property
    def _sharing(self) -> SharedStore:
        shared = sharing(self.engine.store)
        assert shared is not None
        return shared


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """While the store is away a task waits here, so that a worker does not take more and more of them."""
    pause = LOOK_FIRST
    while True:
        try:
            return await work()
        except StoreUnavailableError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LOOK_MOST)


def _still_owed(state: Orchestration, orders: list[tuple[int, int]]) -> list[Effect]:
    left = [(p, attempt) for p, attempt in orders if p in state.owed and state.tickets[p].attempt == attempt]
    return [Publish(left)] if left else []


def _still_due(state: Orchestration, notices: list[tuple[int, int]]) -> list[Effect]:
    return [
        Notify(number, attempt)
        for number, attempt in notices
        if state.notices[number].phase is NoticePhase.OWED and state.notices[number].attempt == attempt
    ]


# -- the process -----------------------------------------------------------------------------------------------------


class _Process:
    """The loop of this process and what runs on it; made anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._host: Host | None = None

    def call(self, work: Callable[[Host], Coroutine[Any, Any, T]]) -> T:
        """From a task's thread: run it on the loop, wait for it. TimeoutError when that takes too long."""
        loop, host = self._ready()
        return self._run(loop, work(host), HANGS)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], patience: float) -> T:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(patience)
        except TimeoutError:
            future.cancel()
            raise

    def _ready(self) -> tuple[asyncio.AbstractEventLoop, Host]:
        with self._lock:
            if self._pid != os.getpid():
                self._loop, self._host = None, None
                self._pid = os.getpid()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="oraculo", daemon=True).start()
            if self._host is None:
                host = Host()
                self._run(self._loop, host.__aenter__(), HANGS)
                self._host = host
            return self._loop, self._host

    def open(self) -> None:
        """The first task finds it open, or opens it."""
        try:
            self._ready()
        except Exception as error:
            log.warning("cannot open yet", error=str(error) or type(error).__name__)

    def close(self) -> None:
        with self._lock:
            if self._loop is not None and self._host is not None and self._pid == os.getpid():
                self._run(self._loop, self._host.__aexit__(), LEAVE)
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop, self._host = None, None


process = _Process()


@signals.worker_process_init.connect
def _begin(**_: Any) -> None:
    """Not here and now: Celery gives a process that begins a few seconds."""
    threading.Thread(target=process.open, name="oraculo-open", daemon=True).start()


@signals.worker_process_shutdown.connect
@signals.worker_shutdown.connect
def _shut_down(**_: Any) -> None:
    process.close()
