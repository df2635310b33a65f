"""What a process of a Celery worker does for its tasks: record answers, publish orders, send notices, sweep."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from base64 import b64decode
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Self, TypeVar

import structlog

from oraculo.apps.celery.process import TASK_TIMEOUT_S, HostProcess
from oraculo.backoff import backoff
from oraculo.bootstrap.roles import Role
from oraculo.core.access import BROKER
from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.engines.celery_engine.routes import PREFIX, SEALED
from oraculo.errors import StoreError, StoreUnavailableError, WireError
from oraculo.ports.store import SharedStore
from oraculo.ports.work import Work
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.ceiling.journal import LOST_AFTER
from oraculo.runtime.kernel.takeover import OVERDUE_MAX_RUNS
from oraculo.runtime.kernel.timers import wakes
from oraculo.runtime.requests import Accepted
from oraculo.service import Oraculo
from oraculo.settings import settings
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.requests import Requisicao
from oraculo.wire.ticket_tokens import UNAUTHENTICATED

log = structlog.get_logger("oraculo.celery")

T = TypeVar("T")
Still = Callable[[Orchestration, list[tuple[int, int]]], list[Effect]]  # filters out what is not wanted any more
WAIT_TIMEOUT_S = 20.0  # that a task waits for the store or the broker, before Celery tries it again later
OWING_MAX_RUNS = 500
STORE_RETRY_FIRST_S, STORE_RETRY_MAX_S = 0.1, 1.0
METRICS_MAX_PORTS = 64  # tried for a port of this process's own
RECORD_TIMEOUT_S = 1.0  # at the end, to record what was published: what is not would be published again


class Host:
    """Has a service, whose engine steps the core, and an effect runner, which does what tasks ask for."""

    def __init__(self) -> None:
        chosen = settings.for_celery(settings.load())
        name = f"{chosen.replica.name or socket.gethostname()}:celery:{os.getpid()}"
        self.service = Oraculo(replace(chosen, replica=replace(chosen.replica, name=name)), role=Role.TASKS)
        self._effects: EffectRunner
        self._postponed: asyncio.Task[None]
        self._ports = contextlib.AsyncExitStack()
        self._sent_again: dict[int, float] = {}  # run → when the sweep of this process did it last

    async def __aenter__(self) -> Self:
        service = await self.service.__aenter__()
        engine = service.engine
        options = replace(service.kernel_options, ceiling=None)
        self._effects = EffectRunner(
            service.kernel_ports, options, engine.enqueue, engine.still_owed, filter_owed=engine.filter_owed
        )
        self._postponed = asyncio.create_task(self._effects.run())  # publishes what had to be postponed
        if service.settings.metrics_port is not None:
            await self._serve_metrics(service.settings.metrics_port)
        return self

    async def _serve_metrics(self, first: int) -> None:
        """Serve what this process saw: each process of a worker takes the next port that is free."""
        for port in range(first, first + METRICS_MAX_PORTS) if first else (0,):
            try:
                taken = await self._ports.enter_async_context(self.service.metrics_on(port))
            except OSError:
                continue
            log.info("metrics", url=f"http://{self.service.settings.host}:{taken}/metrics")
            return
        log.warning("no port is free for metrics", first=first, last=first + METRICS_MAX_PORTS - 1)

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RECORD_TIMEOUT_S):
                while self._effects.backlog().waiting:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        self._postponed.cancel()
        await self._ports.aclose()
        await self._effects.close()
        await self.service.__aexit__()

    # -- what tasks ask for ------------------------------------------------------------------------------------------

    async def opened(self, message: Any) -> Any:
        """The message of a task, its body opened where it is sealed."""
        if not isinstance(message, dict) or not isinstance(message.get(SEALED), str):
            return message
        seal = self.service.kernel_ports.seal
        if seal is None:
            raise StoreError("a task is sealed: set ORACULO_DATA_KEY to the master key that it was sealed under")
        return {**message, "corpo": (await seal.open(b64decode(message[SEALED]))).decode()}

    async def record(self, works: list[Work]) -> dict[str, int]:
        """Record answers; they are durable when it returns. Fate → how many."""
        if (guard := self.service.answer_guard) is not None:
            works = await guard.judged([(work.body, NO_HEADERS) for work in works], works)
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            outcomes = await _while_store_is_away(lambda: self.service.engine.submit(works))
        return dict(Counter(outcome.fate.value for outcome in outcomes))

    async def begin(self, request: Requisicao, key: str) -> Accepted:
        """Begin an orchestration that a task asks for. WireError: requests have to be signed, and a task cannot be."""
        if self.service.signed_requests:
            raise WireError(UNAUTHENTICATED, "a task has no signature; send the request to a queue, or over HTTP")
        return await self.service.requests.accept(request, key, actor=BROKER)

    async def publish(self, orders: Sequence[Sequence[int]]) -> int:
        """Publish the messages of these (run, position, attempt), as far as they are still owed."""
        return await self._perform(orders, _still_owed, WAIT_TIMEOUT_S)

    async def notify(self, notices: Sequence[Sequence[int]]) -> int:
        """Try each of these (run, notice, attempt) once."""
        return await self._perform(notices, _still_due, TASK_TIMEOUT_S)

    async def _perform(self, wanted: Sequence[Sequence[int]], still: Still, timeout_s: float) -> int:
        by_run: dict[int, list[tuple[int, int]]] = {}
        for run, number, attempt in wanted:
            by_run.setdefault(run, []).append((number, attempt))
        done, waiting = 0, self._effects.postponed
        async with asyncio.timeout(timeout_s):
            loaded = await _while_store_is_away(lambda: self._store.load(list(by_run)))
            for run, recorded in loaded.items():
                state = rebuild(recorded)
                effects = still(state, [one for one in by_run[run] if (run, *one) not in waiting])
                done += len(effects)
                self._effects.take(state, effects)
            await self._effects.flush()
        return done

    async def sweep(self) -> dict[str, int]:
        """Do what others left undone: deadlines, the debts of dead processes, tasks that Celery's broker lost."""
        store, engine = self._store, self.service.engine
        dead, owing = await store.rescue()
        for member in dead:
            log.warning("took over from a dead process", replica=member.name, slot=member.slot, owing=len(owing))
        lost = self._not_lately(await store.owing(LOST_AFTER, OWING_MAX_RUNS, unlimited=True))  # the ceiling's are its
        await engine.send_again([*owing, *lost])
        overdue = await store.overdue(timedelta(), OVERDUE_MAX_RUNS)  # no other process looks after deadlines
        await engine.submit(wakes(overdue))
        return {"mortos": len(dead), "devidas": len(owing) + len(lost), "vencidas": len(overdue)}

    def _not_lately(self, runs: Sequence[int]) -> list[int]:
        """Leave out what was sent again lately: while a broker is away much is owed for long, and would pile up."""
        now = asyncio.get_running_loop().time()
        since = now - LOST_AFTER.total_seconds()
        self._sent_again = {run: at for run, at in self._sent_again.items() if at > since}
        chosen = [run for run in runs if run not in self._sent_again]
        self._sent_again |= dict.fromkeys(chosen, now)
        return chosen

    async def queues(self) -> list[str]:
        """Return the Celery queues of all orders there were."""
        return [PREFIX + queue for queue in await self._store.queues()]

    @property
    def _store(self) -> SharedStore:
        shared = self.service.kernel_ports.store.sharing
        assert shared is not None
        return shared


async def _while_store_is_away(work: Callable[[], Awaitable[T]]) -> T:
    """Wait for the store here, so that a worker does not take more and more tasks meanwhile."""
    pauses = backoff(STORE_RETRY_FIRST_S, STORE_RETRY_MAX_S)
    while True:
        try:
            return await work()
        except StoreUnavailableError:
            await asyncio.sleep(next(pauses))


def _still_owed(state: Orchestration, orders: list[tuple[int, int]]) -> list[Effect]:
    if state.paused is not None:  # when it goes on, a task names them anew
        return []
    left = [order for order in orders if state.owes_order(*order)]
    return [Publish(left)] if left else []


def _still_due(state: Orchestration, notices: list[tuple[int, int]]) -> list[Effect]:
    return [Notify(*notice) for notice in notices if state.owes_notice(*notice)]


process: HostProcess[Host] = HostProcess(Host)
process.follow_celery()
