"""One run of a worker: orders are taken, worked on, kept alive, answered and, at a stop, given back."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from time import time
from typing import Any

import structlog

from oraculo.backoff import backoff
from oraculo.errors import ApiError, OraculoError, WireError, WorkError
from oraculo.wire import mensagem
from oraculo.wire.control_messages import running_ticket
from oraculo.wire.mensagem import Mensagem
from oraculo.worker import answers
from oraculo.worker.answers import Handler, WorkerFunction
from oraculo.worker.begun import Begun
from oraculo.worker.offered import OfferTaker
from oraculo.worker.references import REFERENCE_KEY
from oraculo.worker.registering import Registrar, WorkerTraits, registration
from oraculo.worker.threads import PlainCalls, Threads
from oraculo.worker.transport import Job, Meter, Transport

log = structlog.get_logger("oraculo.worker")

TAKE_MAX_ORDERS = 256
TAKE_WAIT_S = 5.0
CONCURRENT_SENDS = 3
RETRY_FIRST_S, RETRY_MAX_S = 0.1, 5.0
DECLARE_RETRY_MAX_S = 60.0
SLOT_WAIT_S = 5.0  # how long an order of a shared queue may wait here for a free slot before others get it
GIVE_BACK_TIMEOUT_S, LAST_ANSWERS_TIMEOUT_S = 2.0, 5.0  # at a stop, on top of the worker's patience


class WorkerRun:
    """The functions of a worker on one transport, until `stop`. `patience_s` is how long work that was begun may still
    take after that; `log_orders` writes a line for each order that was done; `threads` is where plain functions run;
    with `traits` it registers."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        transport: Transport,
        *,
        name: str,
        concurrency: int,
        patience_s: float,
        meter: Meter | None = None,
        log_orders: bool = False,
        threads: PlainCalls | None = None,
        traits: WorkerTraits | None = None,
    ) -> None:
        self._handlers = handlers
        self._transport = transport
        self._name = name
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._meter = meter
        self._log_orders = log_orders
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        self._slots = asyncio.Semaphore(concurrency)
        self._threads = threads or Threads()
        self._outbox: list[tuple[Job, bytes]] = []
        self._answered = asyncio.Event()
        self._no_more_answers = False
        self._jobs: set[asyncio.Task[None]] = set()  # begun, or waiting for a slot
        self._waiting: set[asyncio.Task[None]] = set()  # the part of them that waits
        self._begun: dict[int, dict[str, Any]] = {}  # what is being worked on, when the worker registers
        self._doing: dict[tuple[str, int], asyncio.Task[Any]] = {}  # and by whom
        self._open = asyncio.Event()  # cleared while it is drained
        self._open.set()
        self._takes = asyncio.Event()  # cleared while it takes only what is offered to it
        if traits is None or not traits.offers:
            self._takes.set()
        self._registrar: Registrar | None = None
        if traits is not None:
            about = registration(name, sorted(handlers), concurrency, traits)
            begun, taker = self._begun, OfferTaker(transport, handlers, self._begin, self._has_room)
            told = (self._drained, self._stop_work, taker.take, self._takes.set)
            self._registrar = Registrar(transport, about, lambda: list(begun.values()), *told)

    @property
    def busy(self) -> int:
        """The number of orders that it holds."""
        return len(self._jobs)

    @property
    def takes_orders(self) -> bool:
        """False while it is drained."""
        return self._open.is_set()

    def stop(self) -> None:
        """Take no more orders, finish what was begun."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`; then finish what was begun, as far as patience goes, and give back the rest."""
        sender = asyncio.create_task(self._send_answers())
        takers = [asyncio.create_task(self._take_orders(queue)) for queue in self._handlers]
        declared = {queue: one.schema for queue, one in self._handlers.items() if one.schema is not None}
        declaring = asyncio.create_task(self._declare(declared))
        registrar = None if self._registrar is None else asyncio.create_task(self._registrar.run())
        try:
            await self._stopping.wait()
        finally:
            if takers and self._transport.take_grace:
                await asyncio.wait(takers, timeout=self._transport.take_grace)
            await _cancel([*takers, declaring])
            for task in list(self._waiting):
                task.cancel()
            if self._jobs:
                await asyncio.wait(self._jobs, timeout=self._patience_s)
            await _cancel(self._jobs, GIVE_BACK_TIMEOUT_S)
            self._no_more_answers = True
            self._answered.set()
            await asyncio.wait([sender], timeout=LAST_ANSWERS_TIMEOUT_S)
            if not sender.done():
                log.error("worker stopped with answers that could not be sent; their orders go to other workers")
            await _cancel([sender])
            if registrar is not None and self._registrar is not None:
                await _cancel([registrar])
                await self._registrar.goodbye()
            self._threads.close()
            await self._transport.close()

    async def _declare(self, schemas: Mapping[str, dict[str, Any]]) -> None:
        """Say which parameters the functions take, again and again until that is known, or refused."""
        for queue, schema in schemas.items():
            for pause in backoff(RETRY_FIRST_S, DECLARE_RETRY_MAX_S):
                try:
                    await self._transport.declare(queue, schema)
                except ApiError as error:
                    if error.status < 500 and error.status != 429:
                        log.warning("parameters not declared: the server refused", queue=queue, error=str(error))
                        break
                except (OraculoError, OSError) as error:
                    log.debug("parameters not declared yet", queue=queue, error=str(error))
                else:
                    break
                await asyncio.sleep(pause)

    async def _take_orders(self, queue: str) -> None:
        await self._takes.wait()
        handler = self._handlers[queue]
        pauses = None
        while not self._stopping.is_set():
            if not self._open.is_set():
                await self._open.wait()
            free = self._concurrency - len(self._jobs)
            if free <= 0:  # never take more than can be begun
                self._room.clear()
                await self._room.wait()
                continue
            try:
                jobs = await self._transport.take(queue, min(TAKE_MAX_ORDERS, free), TAKE_WAIT_S)
            except Exception as error:
                if pauses is None:
                    _warn("cannot take work, trying again", error, queue=queue)
                    pauses = backoff(RETRY_FIRST_S, RETRY_MAX_S)
                await asyncio.sleep(next(pauses))
                continue
            if pauses is not None:
                log.info("taking work again", queue=queue)
                pauses = None
            if self._stopping.is_set():
                await asyncio.gather(*(self._give_back(job) for job in jobs))
                return
            for job in jobs:
                self._begin(handler, job)

    def _has_room(self) -> bool:
        return len(self._jobs) < self._concurrency and self._open.is_set() and not self._stopping.is_set()

    def _begin(self, handler: Handler, job: Job) -> None:
        if self._meter is not None:
            self._meter.consumed(handler.kind, 1)
        task = asyncio.create_task(self._do(handler, job))
        self._jobs.add(task)
        task.add_done_callback(self._done)

    def _drained(self, drained: bool) -> None:
        """Take nothing more, or take orders again."""
        if drained == self._open.is_set():
            log.warning("drained: no more orders are taken" if drained else "orders are taken again")
        if drained:
            self._open.clear()
        else:
            self._open.set()

    def _stop_work(self, ticket_id: str, attempt: int) -> None:
        """Give an order back whose place is needed for a more urgent one; what a plain function does goes on alone."""
        task = self._doing.pop((ticket_id, attempt), None)
        if task is not None:
            log.warning("work stopped: a more urgent ticket needs its place", ticket_id=ticket_id)
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        self._room.set()

    async def _do(self, handler: Handler, job: Job) -> None:
        keeper = None
        if self._transport.keep_every is not None:
            keeper = asyncio.create_task(self._keep_alive(job, asyncio.current_task()))
        try:
            if self._slots.locked():
                await self._wait_for_slot()
            else:
                await self._slots.acquire()
            try:
                answer = await self._work(handler, job)
            finally:
                self._slots.release()
        except (asyncio.CancelledError, TimeoutError):
            await self._give_back(job)
            return
        finally:
            if keeper is not None:
                keeper.cancel()
        self._outbox.append((job, answer))
        self._answered.set()

    async def _wait_for_slot(self) -> None:
        """Wait for a free slot: several queues may have brought more than can be begun. Raises TimeoutError when an
        order of a shared queue has waited long enough."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            async with asyncio.timeout(None if self._transport.keep_every is None else SLOT_WAIT_S):
                await self._slots.acquire()
        finally:
            self._waiting.discard(task)

    async def _keep_alive(self, job: Job, doing: asyncio.Task[None] | None) -> None:
        """Tell the transport that the work goes on; cancel the work when its answer is not wanted any more."""
        while True:
            await asyncio.sleep(self._transport.keep_every or TAKE_WAIT_S)
            try:
                wanted = await self._transport.keep(job)
            except (OraculoError, OSError):
                continue
            if not wanted and doing is not None:
                log.info("work cancelled: its answer is not wanted any more", queue=job.queue)
                doing.cancel()
                return

    async def _work(self, handler: Handler, job: Job) -> bytes:
        """Return the bytes of the answer, also when the function failed."""
        try:
            order = mensagem.parse_order(job.body)
        except WireError as error:
            log.error("order cannot be read", queue=job.queue, error=error.detail + answers.avro_hint(job.body))
            return answers.refused(handler, job.body, error.detail, self._transport.sign)
        doing = (order.ticket_id or "", order.tentativa or 1)
        if self._registrar is not None and order.ticket_id is not None:
            self._begun[id(job)] = running_ticket(*doing, datetime.fromtimestamp(time(), UTC))
            if (task := asyncio.current_task()) is not None:
                self._doing[doing] = task
        try:
            return await self._work_on(handler, job, order)
        finally:
            if self._begun.pop(id(job), None) is not None:
                self._doing.pop(doing, None)

    async def _work_on(self, handler: Handler, job: Job, order: Mensagem) -> bytes:
        if isinstance(reference := order.payload.get(REFERENCE_KEY), dict):
            try:
                order.payload["dados"] = await self._transport.resolve(reference)
            except (OraculoError, OSError) as error:
                log.warning("data of an order cannot be had", queue=job.queue, error=str(error))
                missing = answers.failure(handler, "dados_indisponiveis", str(error), False)
                return answers.answer(handler, order, missing, self._name, self._transport.sign)
        clock, meter = asyncio.get_running_loop().time, self._meter
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
            meter.ended(handler.kind, clock() - began, answers.error_of(payload))
        if self._log_orders:
            log.info(
                "work done",
                correlation_id=order.correlation_id,
                ticket_id=order.ticket_id,
                tentativa=order.tentativa,
                queue=job.queue,
                status=payload.get("status", "ok"),
                duration_ms=round((clock() - began) * 1000, 3),
                **answers.trace_fields(order),
            )
        took_ms = round((clock() - began) * 1000)
        return answers.answer(handler, order, payload, self._name, self._transport.sign, took_ms)

    async def _call(self, handler: Handler, order: Mensagem) -> dict[str, Any]:
        """Return the payload of what the function returned, or of how it failed."""
        try:
            chosen = handler.of(order)
            arguments = answers.arguments(chosen, order)
        except WorkError as error:
            return answers.failure(handler, error.codigo, error.mensagem, error.definitivo)
        limit: asyncio.Timeout | None = None
        try:
            begun = Begun(chosen.function(**arguments)) if chosen.is_async else None
            if begun is not None and begun.ended:
                value = begun.value
            else:
                limit = asyncio.timeout(answers.allowed_s(order))
                async with limit:
                    value = await (begun or self._in_thread(chosen, arguments))
        except WorkError as error:
            return answers.failure(handler, error.codigo, error.mensagem, error.definitivo)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # this job is cancelled, and not something that the function waited for
            about = {"correlation_id": order.correlation_id, "ticket_id": order.ticket_id}
            if limit is not None and limit.expired():
                log.warning("work given up", **about)
                return answers.failure(handler, "tempo_esgotado", f"não terminou a tempo de {order.prazo}", False)
            log.exception("work failed", **about, **answers.trace_fields(order))
            return answers.failure(handler, type(error).__name__, str(error) or type(error).__name__, False)
        return answers.success(handler, value)

    async def _in_thread(self, chosen: WorkerFunction, arguments: dict[str, Any]) -> Any:
        value = await self._threads.run(lambda: chosen.function(**arguments))
        return await value if inspect.isawaitable(value) else value

    async def _send_answers(self) -> None:
        """Send answers as they come; while some are being confirmed the next ones are on their way."""
        sends: set[asyncio.Task[None]] = set()
        try:
            while not self._no_more_answers or self._outbox:
                await self._answered.wait()
                self._answered.clear()
                if len(sends) >= CONCURRENT_SENDS:
                    await asyncio.wait(sends, return_when=asyncio.FIRST_COMPLETED)
                if self._outbox:
                    task = asyncio.create_task(self._send_outbox())
                    sends.add(task)
                    task.add_done_callback(sends.discard)
                    await asyncio.sleep(0)
            if sends:
                await asyncio.wait(sends)
        finally:
            for task in list(sends):
                task.cancel()

    async def _send_outbox(self) -> None:
        """Send all answers so far in one call; when that fails, again, for as long as it takes."""
        sending, self._outbox = self._outbox, []
        pauses = None
        while sending:
            try:
                await self._transport.answer(sending)
            except Exception as error:
                if pauses is None:
                    _warn("cannot send answers, trying again", error, answers=len(sending))
                    pauses = backoff(RETRY_FIRST_S, RETRY_MAX_S)
                await asyncio.sleep(next(pauses))
                continue
            if pauses is not None:
                log.info("answers sent", answers=len(sending))
            return

    async def _give_back(self, job: Job) -> None:
        try:
            await self._transport.give_back(job)
        except Exception as error:
            _warn("cannot give work back; it comes back by itself when its lease ends", error, queue=job.queue)


async def _cancel(tasks: Iterable[asyncio.Task[None]], timeout_s: float | None = None) -> None:
    """Cancel tasks and wait until they have ended, for `timeout_s` at most."""
    chosen = list(tasks)
    for task in chosen:
        task.cancel()
    if chosen:
        await asyncio.wait(chosen, timeout=timeout_s)


def _warn(what: str, error: Exception, **about: Any) -> None:
    if isinstance(error, OraculoError | OSError):
        log.warning(what, error=str(error), **about)
    else:
        log.warning(what, error=str(error), exc_info=error, **about)
