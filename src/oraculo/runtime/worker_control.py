"""The control queue: workers of a broker register, say that they are alive and go, without any connection to us.

A worker that is told something (to take nothing more) is told in a queue of its own, if it has one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import orjson
import structlog

from oraculo.core.access import BROKER
from oraculo.core.tenants import in_tenant, queue_in, tenant_of
from oraculo.errors import BrokerError, StoreError, UnknownIdError, WireError
from oraculo.ports.broker import Broker, Outgoing, publish_confirmed
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.consumer import quarantined
from oraculo.runtime.workers import WorkerBook
from oraculo.wire import names
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.worker_messages import Heartbeat, Registration, read_control

log = structlog.get_logger("oraculo.workers")

REGISTER_AGAIN, DRAIN, RESUME, NO_OFFERS = "registrar", "drenar", "retomar", "sem_ofertas"


class WorkerControl:
    """Takes messages of the control queue. `submit` keeps those that cannot be read as dead letters. `offers`: workers
    may wait for offers."""

    def __init__(
        self,
        book: WorkerBook,
        broker: Broker,
        submit: Callable[[list[Work]], Awaitable[list[Outcome]]],
        *,
        offers: bool = False,
    ) -> None:
        self._offers = offers
        self._book = book
        self._broker = broker
        self._submit = submit
        book.told = self.tell

    def from_message(self, raw: bytes, queue: str, _headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """Turn a message into work for `take`; one that cannot be read is a dead letter."""
        try:
            read_control(raw)
        except WireError as error:
            return quarantined(raw, queue, error)
        return Work(queue=queue, body=raw)

    async def take(self, works: list[Work]) -> list[Outcome]:
        """Apply what `from_message` made. Messages that may come twice do no harm twice."""
        dead = [work for work in works if work.dead is not None]
        if dead:
            await self._submit(dead)
        return [Outcome(Fate.QUARANTINED) if work.dead is not None else await self._apply(work) for work in works]

    async def _apply(self, work: Work) -> Outcome:
        tenant = tenant_of(work.queue)
        kind, worker, said = read_control(work.body)
        key = in_tenant(tenant, worker)
        try:
            if isinstance(said, Registration):
                await self._book.register(tenant, said, BROKER, "broker")
                if said.ofertas and not self._offers:
                    log.warning("worker waits for offers, but none are made here: SCHEDULER_OFFERS", worker=worker)
                    await self._say(key, said.fila_propria, NO_OFFERS)
            elif isinstance(said, Heartbeat):
                await self._book.beat(key, said, BROKER)
            else:
                await self._book.leave(key)
        except UnknownIdError:
            log.info("heartbeat of a worker that is not registered", worker=worker, message=kind)
            await self.tell(key, names.worker_queue(worker), None)
        except StoreError as error:
            log.warning("control message given back: store unavailable", worker=worker, error=str(error))
            return Outcome(Fate.RETRY)
        return Outcome(Fate.APPLIED)

    async def tell(self, key: str, queue: str | None, draining: bool | None) -> None:
        """Tell a worker in its own queue that it is drained, that it may go on, or (None) that it has to register."""
        await self._say(key, queue, REGISTER_AGAIN if draining is None else DRAIN if draining else RESUME)

    async def _say(self, key: str, queue: str | None, order: str) -> None:
        meant = None if queue is None else queue_in(tenant_of(key), queue)
        if meant is None:
            return
        try:
            await publish_confirmed(self._broker, [Outgoing(meant, orjson.dumps({"ordem": order}), "")])
        except BrokerError as error:
            log.warning("worker not told: broker unavailable", worker=key, error=str(error))
