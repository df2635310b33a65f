"""For people who write escavadores and executadores: register functions, run them anywhere.

    worker = Worker()

    @worker.escavador("youtube")
    async def youtube(parametros: dict) -> list[dict]: ...

The same code runs inside the orchestrator's process, over HTTP leases (`ORACULO_BROKER=memory://`) and over a broker. A
function may be async or plain (plain ones run in threads). It may take, by name, any of `parametros`, `dados`,
`correlation_id`, `ticket_id`, `tentativa`, `prazo` and `mensagem`. Work can be done twice when a worker dies at the
wrong moment: `ticket_id` is the same for every attempt, so use it as the idempotency key of side effects.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from typing import Any, Protocol, TypeVar

import structlog

from oraculo.core.vocabulary import Kind
from oraculo.errors import OraculoError, WireError, WorkError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settle, Settlement
from oraculo.wire import mensagem, names, strict_json
from oraculo.wire.mensagem import Mensagem

log = structlog.get_logger("oraculo.worker")

F = TypeVar("F", bound=Callable[..., Any])

TAKE = 256
WAIT = 5.0


@dataclass(slots=True)
class Job:
    """One order that was taken: its bytes, and what the transport needs to settle it."""

    queue: str
    body: bytes
    handle: Any


class Transport(Protocol):
    """How orders come and answers go."""

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]: ...

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        """Send the answers and settle their orders."""
        ...

    async def give_back(self, job: Job) -> None: ...

    async def keep(self, job: Job) -> bool:
        """Say that the work goes on. False: nobody wants the answer any more."""
        ...

    keep_every: float | None  # seconds between two `keep`s; None when the transport needs none

    async def close(self) -> None: ...


class BrokerTransport:
    """Orders and answers over a broker, or over the in-process one."""

    keep_every: float | None = None

    def __init__(self, broker: Broker, *, own: bool = False) -> None:
        self._broker = broker
        self._own = own

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]:
        return [Job(queue, d.body, d) for d in await self._broker.fetch(queue, limit=limit, wait=wait)]

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        await self._broker.publish([Outgoing(names.RESULTS, body, "") for _, body in answers])
        await self._broker.settle([Settlement(_delivery(job)) for job, _ in answers])

    async def give_back(self, job: Job) -> None:
        await self._broker.settle([Settlement(_delivery(job), Settle.RETRY)])

    async def keep(self, job: Job) -> bool:
        return True

    async def close(self) -> None:
        if self._own:
            await self._broker.close()


def _delivery(job: Job) -> Delivery:
    delivery: Delivery = job.handle
    return delivery


@dataclass(slots=True)
class _Handler:
    kind: Kind
    name: str
    function: Callable[..., Any]
    wants: frozenset[str]
    is_async: bool


_ALLOWED = ("parametros", "dados", "correlation_id", "ticket_id", "tentativa", "prazo", "mensagem")


class Worker:
    """`concurrency` is how many orders are worked on at once, all functions together."""

    def __init__(self, *, concurrency: int = 16, name: str | None = None) -> None:
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._handlers: dict[str, _Handler] = {}
        self._stopping = asyncio.Event()
        self._outbox: list[tuple[Job, bytes]] = []
        self._written = asyncio.Event()
        self._slots = asyncio.Semaphore(concurrency)
        self._threads: ThreadPoolExecutor | None = None
        self._doing: set[asyncio.Task[None]] = set()

    def escavador(self, fonte: str) -> Callable[[F], F]:
        """Register a collector: what it returns are the `dados` of its result."""
        return self._register(Kind.COLETA, fonte)

    def executador(self, nome: str) -> Callable[[F], F]:
        """Register an executor: it returns the payload of its result, an object."""
        return self._register(Kind.EXECUCAO, nome)

    @property
    def queues(self) -> list[str]:
        return list(self._handlers)

    def _register(self, kind: Kind, name: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            wants = frozenset(inspect.signature(function).parameters)
            unknown = wants.difference(_ALLOWED)
            if unknown:
                raise TypeError(f"{function.__name__} takes {sorted(unknown)}; allowed are {', '.join(_ALLOWED)}")
            queue = names.queue_of(kind, name)
            self._handlers[queue] = _Handler(kind, name, function, wants, inspect.iscoroutinefunction(function))
            return function

        return register

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self, transport: Transport) -> None:
        """Work until `stop`; then finish what was begun and give back the rest."""
        self._stopping = asyncio.Event()
        self._written = asyncio.Event()
        self._slots = asyncio.Semaphore(self.concurrency)
        self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix="oraculo-worker")
        sender = asyncio.create_task(self._send(transport))
        takers = [asyncio.create_task(self._take(transport, queue)) for queue in self._handlers]
        try:
            await self._stopping.wait()
        finally:
            for task in takers:
                task.cancel()
            await asyncio.gather(*takers, return_exceptions=True)
            await asyncio.gather(*self._doing, return_exceptions=True)
            while self._outbox:
                await self._flush(transport)
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)
            await transport.close()

    def stop(self) -> None:
        self._stopping.set()

    async def _take(self, transport: Transport, queue: str) -> None:
        handler = self._handlers[queue]
        pause = 0.1
        while not self._stopping.is_set():
            async with self._slots:
                pass  # never take more than can be begun
            limit = max(1, min(TAKE, self._slots._value))
            try:
                jobs = await transport.take(queue, limit, WAIT)
                pause = 0.1
            except (OraculoError, OSError) as error:
                log.warning("cannot take work", queue=queue, error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)
                continue
            for job in jobs:
                await self._slots.acquire()
                task = asyncio.create_task(self._do(transport, handler, job))
                self._doing.add(task)
                task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._doing.discard(task)
        self._slots.release()

    async def _do(self, transport: Transport, handler: _Handler, job: Job) -> None:
        try:
            order = mensagem.parse_order(job.body)
        except WireError as error:
            log.error("an order that cannot be read is dropped; its ticket will time out", error=error.detail)
            self._outbox.append((job, b""))
            self._written.set()
            return
        keeper = None
        if transport.keep_every is not None:
            keeper = asyncio.create_task(self._keep(transport, job, asyncio.current_task()))
        try:
            payload = await self._call(handler, order)
        except asyncio.CancelledError:
            await transport.give_back(job)
            return
        finally:
            if keeper is not None:
                keeper.cancel()
        self._outbox.append((job, _answer(handler, order, payload)))
        self._written.set()

    async def _keep(self, transport: Transport, job: Job, doing: asyncio.Task[None] | None) -> None:
        assert transport.keep_every is not None
        while True:
            await asyncio.sleep(transport.keep_every)
            try:
                wanted = await transport.keep(job)
            except (OraculoError, OSError):
                continue
            if not wanted and doing is not None:
                log.info("nobody wants this answer any more", queue=job.queue)
                doing.cancel()
                return

    async def _call(self, handler: _Handler, order: Mensagem) -> dict[str, Any]:
        """The payload of the answer, also when the function failed."""
        given: dict[str, Any] = {
            "parametros": order.payload.get("parametros", {}),
            "dados": order.payload.get("dados", []),
            "correlation_id": order.correlation_id,
            "ticket_id": order.ticket_id,
            "tentativa": order.tentativa or 1,
            "prazo": order.prazo,
            "mensagem": order,
        }
        arguments = {name: given[name] for name in handler.wants}
        try:
            if handler.is_async:
                value = await handler.function(**arguments)
            else:
                loop = asyncio.get_running_loop()
                value = await loop.run_in_executor(self._threads, lambda: handler.function(**arguments))
        except asyncio.CancelledError:
            raise
        except WorkError as error:
            return _failure(handler, error.codigo, error.mensagem, error.definitivo)
        except Exception as error:
            log.exception("work failed", correlation_id=order.correlation_id, ticket_id=order.ticket_id)
            return _failure(handler, type(error).__name__, str(error) or type(error).__name__, False)
        if handler.kind is Kind.COLETA:
            return {"fonte": handler.name, "status": "ok", "dados": value, "erros": []}
        if value is None:
            value = {}
        if not isinstance(value, dict):
            value = {"resultado": value}
        return value

    async def _send(self, transport: Transport) -> None:
        while True:
            await self._written.wait()
            self._written.clear()
            await self._flush(transport)

    async def _flush(self, transport: Transport) -> None:
        """Everything that is written so far goes in one call; when that fails, again."""
        answers, self._outbox = self._outbox, []
        pause = 0.1
        while answers:
            try:
                await transport.answer(answers)
                return
            except (OraculoError, OSError) as error:
                log.warning("cannot send answers", answers=len(answers), error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)


def _failure(handler: _Handler, code: str, text: str, definitive: bool) -> dict[str, Any]:
    key = "fonte" if handler.kind is Kind.COLETA else "executador"
    erro = {"codigo": code, "mensagem": text[:4000], "definitivo": definitive}
    return {key: handler.name, "status": "erro", "dados": None, "erros": [erro]}


def _answer(handler: _Handler, order: Mensagem, payload: dict[str, Any]) -> bytes:
    envelope: dict[str, Any] = {
        "correlation_id": order.correlation_id,
        "tipo_evento": handler.kind.answer,
        "payload": payload,
        "timestamp": datetime.fromtimestamp(time(), UTC),
        "ticket_id": order.ticket_id,
        "tentativa": order.tentativa,
    }
    if order.traceparent is not None:
        envelope["traceparent"] = order.traceparent
    try:
        return strict_json.dumps(envelope)
    except (TypeError, ValueError) as error:
        envelope["payload"] = _failure(handler, "resultado_invalido", f"o resultado não é JSON: {error}", True)
        return strict_json.dumps(envelope)
