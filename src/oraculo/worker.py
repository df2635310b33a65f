"""For people who write escavadores and executadores: register functions, run them anywhere.

    worker = Worker()

    @worker.escavador("youtube")
    async def youtube(parametros: dict) -> list[dict]: ...

The same code runs inside the orchestrator's process, over HTTP leases (`ORACULO_BROKER=memory://`) and over a broker. A
function may be async or plain (plain ones run in threads). It may take, by name, any of `parametros`, `dados`,
`correlation_id`, `ticket_id`, `tentativa`, `prazo` and `mensagem`. Work can be done twice when a worker dies at the
wrong moment: `ticket_id` is the same for every attempt, so use it as the idempotency key of side effects. What is
not done half as much time again after its order allows is given up: an async function is cancelled, a plain one is left
alone in its thread.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import structlog

from oraculo import worker_answers
from oraculo.core.vocabulary import Kind
from oraculo.errors import OraculoError, WireError, WorkError
from oraculo.wire import mensagem, names
from oraculo.wire.mensagem import Mensagem
from oraculo.worker_answers import Handler
from oraculo.worker_threads import Threads
from oraculo.worker_transport import BrokerTransport, Job, Meter, Transport

__all__ = ["BrokerTransport", "Job", "Transport", "Worker"]

log = structlog.get_logger("oraculo.worker")

F = TypeVar("F", bound=Callable[..., Any])

TAKE = 256
FLUSHES = 3  # answers are sent in so many calls at once
WAIT = 5.0
RETRY_FIRST, RETRY_MOST = 0.1, 5.0
HOLD = 5.0  # seconds that an order of a shared queue may wait here for a free slot before others get it
GIVE_BACK, LAST_ANSWERS = 2.0, 5.0  # seconds, at a stop, on top of the worker's patience


class Worker:
    """`concurrency` is how many orders are worked on at once, all functions together. `patience` is how many seconds
    work that was begun may still take after `stop`; what is not finished by then is given back."""

    def __init__(self, *, concurrency: int = 16, name: str | None = None, patience: float = 20.0) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}; it must be at least 1")
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.patience = patience
        self.tells = False  # one log line per order
        self.meter: Meter | None = None
        self._handlers: dict[str, Handler] = {}
        self._stop_asked = False
        self._prepare()

    def escavador(self, fonte: str) -> Callable[[F], F]:
        """Register a collector: what it returns are the `dados` of its result."""
        return self._register(Kind.COLETA, fonte)

    def executador(self, nome: str) -> Callable[[F], F]:
        """Register an executor: it returns the payload of its result, an object."""
        return self._register(Kind.EXECUCAO, nome)

    @property
    def queues(self) -> list[str]:
        return list(self._handlers)

    @property
    def busy(self) -> int:
        """Orders that it holds."""
        return len(self._doing)

    def _register(self, kind: Kind, name: str) -> Callable[[F], F]:
        queue = names.queue_of(kind, name)
        if not names.is_queue_name(queue):
            raise ValueError(f"{name!r} cannot be part of a queue's name: letters, digits and _ . - are allowed")

        def register(function: F) -> F:
            self._handlers[queue] = worker_answers.handler(kind, name, function)
            return function

        return register

    # -- running -----------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        self._slots = asyncio.Semaphore(self.concurrency)
        self._threads = Threads()
        self._outbox: list[tuple[Job, bytes]] = []
        self._written = asyncio.Event()
        self._no_more_answers = False
        self._doing: set[asyncio.Task[None]] = set()  # begun, or waiting for a slot
        self._waiting: set[asyncio.Task[None]] = set()  # those that wait

    async def run(self, transport: Transport) -> None:
        """Work until `stop`; then finish what was begun, as far as patience goes, and give back the rest."""
        self._prepare()
        if self._stop_asked:
            self._stopping.set()
        sender = asyncio.create_task(self._send(transport))
        takers = [asyncio.create_task(self._take(transport, queue)) for queue in self._handlers]
        try:
            await self._stopping.wait()
        finally:
            if takers and transport.take_grace:
                await asyncio.wait(takers, timeout=transport.take_grace)
            await _end(takers, 0)
            for task in list(self._waiting):
                task.cancel()
            if self._doing:
                await asyncio.wait(self._doing, timeout=self.patience)
            await _end(self._doing, GIVE_BACK)
            self._no_more_answers = True
            self._written.set()
            await asyncio.wait([sender], timeout=LAST_ANSWERS)
            if not sender.done():
                log.error("stopped with answers that could not be sent; their orders will be given to others")
            await _end([sender], 0)
            self._threads.close()
            self._stop_asked = False
            await transport.close()

    def stop(self) -> None:
        """May be called before `run`, which then ends at once."""
        self._stop_asked = True
        self._stopping.set()

    async def _take(self, transport: Transport, queue: str) -> None:
        handler = self._handlers[queue]
        pause = RETRY_FIRST
        while not self._stopping.is_set():
            free = self.concurrency - len(self._doing)
            if free <= 0:  # never take more than can be begun
                self._room.clear()
                await self._room.wait()
                continue
            try:
                jobs = await transport.take(queue, min(TAKE, free), WAIT)
            except Exception as error:
                if pause == RETRY_FIRST:
                    _warn("cannot take work, trying again", error, queue=queue)
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)
                continue
            if pause != RETRY_FIRST:
                log.info("taking work again", queue=queue)
                pause = RETRY_FIRST
            if self._stopping.is_set():
                await asyncio.gather(*(_give_back(transport, job) for job in jobs))
                return
            if self.meter is not None and jobs:
                self.meter.consumed(handler.kind, len(jobs))
            for job in jobs:
                task = asyncio.create_task(self._do(transport, handler, job))
                self._doing.add(task)
                task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._doing.discard(task)
        self._room.set()

    async def _do(self, transport: Transport, handler: Handler, job: Job) -> None:
        keeper = None
        if transport.keep_every is not None:
            keeper = asyncio.create_task(self._keep(transport, job, asyncio.current_task()))
        try:
            if self._slots.locked():
                await self._slot(transport)
            else:
                await self._slots.acquire()
            try:
                answer = await self._work(handler, job)
            finally:
                self._slots.release()
        except (asyncio.CancelledError, TimeoutError):
            await _give_back(transport, job)
            return
        finally:
            if keeper is not None:
                keeper.cancel()
        self._outbox.append((job, answer))
        self._written.set()

    async def _slot(self, transport: Transport) -> None:
        """Several queues may have brought more than can be begun. What waits too long is given back to others."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            async with asyncio.timeout(None if transport.keep_every is None else HOLD):
                await self._slots.acquire()
        finally:
            self._waiting.discard(task)

    async def _keep(self, transport: Transport, job: Job, doing: asyncio.Task[None] | None) -> None:
        while True:
            await asyncio.sleep(transport.keep_every or WAIT)
            try:
                wanted = await transport.keep(job)
            except (OraculoError, OSError):
                continue
            if not wanted and doing is not None:
                log.info("nobody wants this answer any more", queue=job.queue)
                doing.cancel()
                return

    async def _work(self, handler: Handler, job: Job) -> bytes:
        """The answer, also when the function failed."""
        try:
            order = mensagem.parse_order(job.body)
        except WireError as error:
            log.error("an order that cannot be read", queue=job.queue, error=error.detail)
            return worker_answers.refused(handler, job.body, error.detail)
        clock, meter = asyncio.get_running_loop().time, self.meter
        began = clock()
        if meter is not None:
            meter.began(handler.kind, order.tentativa or 1)
        try:
            payload = await self._call(handler, order)
        except BaseException:  # cancelled: it is given back
            if meter is not None:
                meter.abandoned()
            raise
        if meter is not None:
            meter.ended(handler.kind, clock() - began, worker_answers.error_of(payload))
        if self.tells:
            log.info(
                "work done",
                correlation_id=order.correlation_id,
                ticket_id=order.ticket_id,
                tentativa=order.tentativa,
                queue=job.queue,
                status=payload.get("status", "ok"),
                duration_ms=round((clock() - began) * 1000, 3),
                **_trace(order),
            )
        return worker_answers.answer(handler, order, payload, self.name)

    async def _call(self, handler: Handler, order: Mensagem) -> dict[str, Any]:
        arguments = worker_answers.arguments(handler, order)
        limit = asyncio.timeout(worker_answers.allowed_s(order))
        try:
            async with limit:
                if handler.is_async:
                    value = await handler.function(**arguments)
                else:
                    value = await self._threads.run(lambda: handler.function(**arguments))
                    if inspect.isawaitable(value):
                        value = await value
        except WorkError as error:
            return worker_answers.failure(handler, error.codigo, error.mensagem, error.definitivo)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # it is us who are cancelled, and not something that the function waited for
            if limit.expired():
                log.warning("work given up", correlation_id=order.correlation_id, ticket_id=order.ticket_id)
                return worker_answers.failure(
                    handler, "tempo_esgotado", f"não terminou a tempo de {order.prazo}", False
                )
            log.exception(
                "work failed", correlation_id=order.correlation_id, ticket_id=order.ticket_id, **_trace(order)
            )
            return worker_answers.failure(handler, type(error).__name__, str(error) or type(error).__name__, False)
        return worker_answers.success(handler, value)

    async def _send(self, transport: Transport) -> None:
        """While some answers are being confirmed the next ones are on their way."""
        flying: set[asyncio.Task[None]] = set()
        try:
            while not self._no_more_answers or self._outbox:
                await self._written.wait()
                self._written.clear()
                if len(flying) >= FLUSHES:
                    await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
                if self._outbox:
                    task = asyncio.create_task(self._flush(transport))
                    flying.add(task)
                    task.add_done_callback(flying.discard)
                    await asyncio.sleep(0)
            if flying:
                await asyncio.wait(flying)
        finally:
            for task in list(flying):
                task.cancel()

    async def _flush(self, transport: Transport) -> None:
        """Everything that is written so far goes in one call; when that fails, again, for as long as it takes."""
        answers, self._outbox = self._outbox, []
        pause = RETRY_FIRST
        while answers:
            try:
                await transport.answer(answers)
            except Exception as error:
                if pause == RETRY_FIRST:
                    _warn("cannot send answers, trying again", error, answers=len(answers))
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_MOST)
                continue
            if pause != RETRY_FIRST:
                log.info("answers sent", answers=len(answers))
            return


def _trace(order: Mensagem) -> dict[str, str]:
    """The ids of the trace that an order belongs to, as log fields."""
    context = order.traceparent or ""
    return {"trace.id": context[3:35], "span.id": context[36:52]} if len(context) >= 55 else {}


async def _give_back(transport: Transport, job: Job) -> None:
    try:
        await transport.give_back(job)
    except Exception as error:
        _warn("cannot give work back; it comes back by itself when its lease ends", error, queue=job.queue)


async def _end(tasks: Iterable[asyncio.Task[None]], patience: float) -> None:
    """Cancel them and wait until they have ended, or for `patience` seconds when that is not 0."""
    chosen = list(tasks)
    for task in chosen:
        task.cancel()
    if chosen:
        await asyncio.wait(chosen, timeout=patience or None)


def _warn(what: str, error: Exception, **about: Any) -> None:
    if isinstance(error, OraculoError | OSError):
        log.warning(what, error=str(error), **about)
    else:
        log.warning(what, error=str(error), exc_info=error, **about)
