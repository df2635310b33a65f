"""For people who write collectors and executors: register functions, run them anywhere.

    worker = Worker()

    @worker.collector("youtube")
    async def youtube(params: dict) -> list[dict]: ...

    worker.run_forever()

The same code runs inside the orchestrator's process, over HTTP leases (`ORACULO_BROKER=memory://`) and over a broker.
A function may be async or plain (plain ones run in threads). It may take, by name, any of `params`, `data` (also
called `parametros` and `dados`), `correlation_id`, `ticket_id`, `tentativa`, `prazo` and `mensagem`; one for tickets of
Fluxo C also `task_id`, `task_type` and `description`. Work can be done
twice when a worker dies at the wrong moment: `ticket_id` is the same for every attempt, so use it as the idempotency
key of side effects. Work that is not done half as much time again after its order allows is given up: an async
function is cancelled, a plain one is left alone in its thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from oraculo.core.vocabulary import Kind, TaskType
from oraculo.wire import names
from oraculo.wire.flow.topics import Topics
from oraculo.worker import answers
from oraculo.worker.answers import ANY_TASK_TYPE, Handler, TicketFunctions
from oraculo.worker.registering import WorkerTraits
from oraculo.worker.running import WorkerRun
from oraculo.worker.transport import BrokerTransport, Job, Meter, Transport

__all__ = ["BrokerTransport", "Job", "Transport", "Worker"]

F = TypeVar("F", bound=Callable[..., Any])

TASK_TYPES = (*TaskType, ANY_TASK_TYPE)
TICKETS_TOPIC = Topics().tickets
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Worker:
    """Functions that collect, execute and do tickets of Fluxo C. `concurrency` is how many orders are worked on at
    once, all functions together; `patience` is how many seconds work that was begun may still take after `stop` before
    it is given back. `capabilities`, `resources`, `labels`, `version` and `security_level` are what it says of itself
    when it registers (ORACULO_WORKER_REGISTRY)."""

    def __init__(
        self,
        *,
        concurrency: int = 16,
        name: str | None = None,
        patience: float = 20.0,
        capabilities: Sequence[str] = (),
        resources: Mapping[str, int] | None = None,
        labels: Mapping[str, str] | None = None,
        version: str = "",
        security_level: str = "INTERNAL",
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}; it must be at least 1")
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.patience = patience
        self.traits = WorkerTraits(tuple(capabilities), resources or {}, labels or {}, version, security_level)
        self._handlers: dict[str, Handler] = {}
        self._run: WorkerRun | None = None
        self._stop_asked = False

    def collector(self, source: str) -> Callable[[F], F]:
        """Register a collector (*escavador*): what the function returns are the `dados` of its result."""
        return self._register(Kind.COLETA, source)

    def executor(self, name: str) -> Callable[[F], F]:
        """Register an executor (*executador*): the function returns the payload of its result, an object."""
        return self._register(Kind.EXECUCAO, name)

    def escavador(self, fonte: str) -> Callable[[F], F]:
        """Register a collector; the same as `collector`."""
        return self.collector(fonte)

    def executador(self, nome: str) -> Callable[[F], F]:
        """Register an executor; the same as `executor`."""
        return self.executor(nome)

    def ticket(self, task_type: str = ANY_TASK_TYPE, *, topic: str = TICKETS_TOPIC) -> Callable[[F], F]:
        """Register a function for tickets of Fluxo C of that type (`BUILD`, `COMPENSATE`, …; `*`, the default, for all
        that have no function of their own), taken from `topic`. It returns the payload of its result, an object. A
        ticket of a type without a function is answered with a failure that another attempt may mend."""
        if task_type not in TASK_TYPES:
            raise ValueError(f"{task_type!r} is no task type of Fluxo C; allowed: {', '.join(TASK_TYPES)}")

        def register(function: F) -> F:
            known = self._handlers.setdefault(topic, TicketFunctions(topic))
            if not isinstance(known, TicketFunctions):
                raise ValueError(f"{topic!r} is the queue of another function")
            known.add(task_type, function)
            return function

        return register

    @property
    def queues(self) -> list[str]:
        """The queues that orders are taken from, by their usual names."""
        return list(self._handlers)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The functions, each by the usual name of the queue that it serves."""
        return self._handlers

    @property
    def busy(self) -> int:
        """The number of orders that it holds."""
        return 0 if self._run is None else self._run.busy

    @property
    def takes_orders(self) -> bool:
        """False while it is drained: it registered, and an operator gives it nothing more."""
        return self._run is None or self._run.takes_orders

    def _register(self, kind: Kind, name: str) -> Callable[[F], F]:
        queue = names.queue_of(kind, name)
        if not names.is_queue_name(queue):
            raise ValueError(f"{name!r} cannot be part of a queue's name: letters, digits and _ . - are allowed")

        def register(function: F) -> F:
            self._handlers[queue] = answers.handler(kind, name, function)
            return function

        return register

    async def run(
        self,
        transport: Transport | None = None,
        *,
        url: str | None = None,
        meter: Meter | None = None,
        log_orders: bool = False,
        queue_names: names.QueueNames | None = None,
        register: bool = False,
        offers: bool = False,
    ) -> None:
        """Work until `stop`; then finish what was begun, as far as patience goes, and give back the rest.

        Orders come from the broker of ORACULO_BROKER; with `memory://`, or with `url`, they are leased over HTTP from
        the server at ORACULO_URL or `url`. A `transport` replaces both. `meter` is told what is done; `log_orders`
        writes a line for each order. `queue_names` says which queues have other names; without a `transport` the
        settings do (ORACULO_QUEUES). With `register` it registers, which without a `transport` ORACULO_WORKER_REGISTRY
        says; with `offers` too it takes from a broker only what is offered to it (SCHEDULER_OFFERS)."""
        if transport is None:
            from oraculo.settings.settings import load
            from oraculo.worker.connect import connected

            settings = load()
            async with connected(settings, self.name, url=url) as found:
                broker = isinstance(found, BrokerTransport)
                served = settings.queue_names.within(settings.tenant) if broker else settings.queue_names
                await self.run(
                    found,
                    meter=meter,
                    log_orders=log_orders,
                    queue_names=served,
                    register=register or settings.worker_registry.enabled,
                    offers=offers or settings.scheduler.offers,
                )
            return
        traits = replace(self.traits, offers=offers and isinstance(transport, BrokerTransport))
        self._run = WorkerRun(
            {(queue_names or names.USUAL).instead_of(queue): handler for queue, handler in self._handlers.items()},
            transport,
            name=self.name,
            concurrency=self.concurrency,
            patience_s=self.patience,
            meter=meter,
            log_orders=log_orders,
            traits=traits if register else None,
        )
        if self._stop_asked:
            self._run.stop()
        try:
            await self._run.run()
        finally:
            self._stop_asked = False

    def run_forever(self, *, url: str | None = None) -> None:
        """Do the same as `run` from a plain script, until SIGTERM or SIGINT."""

        async def main() -> None:
            loop = asyncio.get_running_loop()
            for number in STOP_SIGNALS:
                with contextlib.suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, self.stop)
            await self.run(url=url, log_orders=True)

        asyncio.run(main())

    def stop(self) -> None:
        """Ask `run` to end. May be called before `run`, which then ends at once."""
        self._stop_asked = True
        if self._run is not None:
            self._run.stop()
