"""How orders come to a worker and answers go: the protocol, and its form over a broker. `http.py` has the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, tenant_of
from oraculo.core.vocabulary import Kind
from oraculo.errors import UnknownIdError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settle, Settlement, publish_confirmed
from oraculo.wire import names, quarantine
from oraculo.wire.control_messages import control, order_of
from oraculo.wire.offers import OfferNote, note_of
from oraculo.wire.ticket_tokens import UNAUTHENTICATED
from oraculo.worker.signing import OrderVerifier

log = structlog.get_logger("oraculo.worker")

Resolve = Callable[[Mapping[str, Any]], Awaitable[Any]]  # what an order refers to → the data

Declare = Callable[[str, Mapping[str, Any]], Awaitable[None]]  # queue, and what its parameters have to be


@dataclass(slots=True)
class Job:
    """One order that was taken: its bytes, and what the transport needs to settle it. `offer`: it was offered, and is
    not to be begun too late."""

    queue: str
    body: bytes
    handle: Any
    offer: OfferNote | None = None


@dataclass(slots=True)
class WorkerNews:
    """What a worker that registered is told: whether to take nothing more, to register again, when to beat next; and
    which (ticket_id, attempt) to stop, because a more urgent one needs its place. `offers` are for it alone; with
    `no_offers` there are none, and it takes what comes."""

    drain: bool | None = None
    register_again: bool = False
    next_s: float | None = None
    stop: tuple[tuple[str, int], ...] = ()
    offers: Sequence[Job] = ()
    no_offers: bool = False


class Meter(Protocol):
    """The counters of what a worker does."""

    def consumed(self, kind: Kind, count: int) -> None: ...

    def began(self, kind: Kind, attempt: int) -> None: ...

    def ended(self, kind: Kind, seconds: float, error: str | None) -> None: ...

    def abandoned(self) -> None: ...


class Transport(Protocol):
    """A way for orders to come and for answers to go."""

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]: ...

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        """Send the answers and settle their orders. An empty answer means: the order says not even whose it is."""
        ...

    async def give_back(self, job: Job) -> None: ...

    async def resolve(self, reference: Mapping[str, Any]) -> Any:
        """The data that an order refers to. Raises OraculoError or OSError."""
        ...

    async def declare(self, queue: str, schema: Mapping[str, Any]) -> None:
        """Say which parameters the orders of a queue have to have. Raises OraculoError or OSError."""
        ...

    async def keep(self, job: Job) -> bool:
        """Say that the work goes on. False when the answer is not wanted any more."""
        ...

    async def announce(self, kind: str, said: dict[str, Any]) -> WorkerNews | None:
        """Register (`registro`), beat (`batimento`) or say goodbye (`saida`). Raises OraculoError or OSError."""
        ...

    async def told(self, worker: str, wait: float) -> WorkerNews:
        """Wait so many seconds for something that a worker is told meanwhile."""
        ...

    async def pass_over(self, offers: Sequence[Job]) -> None:
        """Let offers go that are not taken."""
        ...

    keep_every: float | None  # seconds between two `keep`s; None when the transport needs none
    take_grace: float  # seconds that a `take` under way gets at a stop, because cancelling it may strand an order

    sign: Callable[[bytes], bytes] | None  # gives the body of an answer with its signature; None: answers have none

    async def close(self) -> None: ...


class QueueWatch:
    """The count of what one queue brought so far; the prober looks at it to notice silent consumers."""

    slow = True

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.fetches = 0
        self.asking = False
        self._taken: Counter[str] = Counter()

    def heard(self, deliveries: Sequence[Delivery]) -> None:
        self.fetches += 1
        for delivery in deliveries:
            self._taken[delivery.broker] += 1

    def taken(self, broker: str | None = None) -> int:
        return self._taken.total() if broker is None else self._taken[broker] + self._taken[""]


class BrokerTransport:
    """Orders and answers over a broker, or over the in-process one. `sign` signs answers; `verifier` tells orders that
    are the orchestrator's, others go to the dead letters of their queue."""

    keep_every: float | None = None
    take_grace = 0.0

    def __init__(
        self,
        broker: Broker,
        *,
        own: bool = False,
        resolve: Resolve | None = None,
        sign: Callable[[bytes], bytes] | None = None,
        verifier: OrderVerifier | None = None,
        declare: Declare | None = None,
    ) -> None:
        self.sign = sign
        self._verifier = verifier
        self._broker = broker
        self._own = own
        self._resolve = resolve
        self._declare = declare
        self._tenant = DEFAULT_TENANT  # of the queues that it registered with
        self.watches: dict[str, QueueWatch] = {}

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]:
        watch = self.watches.get(queue) or self.watches.setdefault(queue, QueueWatch(queue))
        watch.asking = True
        try:
            deliveries = await self._broker.fetch(queue, limit=limit, wait=wait)
        finally:
            watch.asking = False
        watch.heard(deliveries)
        if self._verifier is not None and deliveries:
            deliveries = await self._verified(self._verifier, deliveries)
        return [Job(queue, delivery.body, delivery) for delivery in deliveries]

    async def _verified(self, verifier: OrderVerifier, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Leave out orders that the orchestrator did not sign. What cannot be told now goes back."""
        try:
            good, bad = await verifier.sort(deliveries)
            if bad:
                log.error("orders without the signature of the orchestrator", queue=bad[0].queue, orders=len(bad))
                detail = "the order is not signed by the orchestrator"
                await publish_confirmed(
                    self._broker, [quarantine.outgoing(one, UNAUTHENTICATED, detail) for one in bad]
                )
                await self._broker.settle([Settlement(one) for one in bad])
        except BaseException:
            await self._broker.settle([Settlement(one, Settle.RETRY, 1.0) for one in deliveries])
            raise
        return good

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        """An order that cannot even be answered goes to the dead letters of its queue."""
        messages = [
            Outgoing(in_tenant(tenant_of(job.queue), names.RESULTS), body, "")
            if body
            else quarantine.outgoing(_delivery(job), "unreadable_order", "a worker could not read it")
            for job, body in answers
        ]
        await publish_confirmed(self._broker, messages)
        await self._broker.settle([Settlement(_delivery(job)) for job, _ in answers])

    async def give_back(self, job: Job) -> None:
        await self._broker.settle([Settlement(_delivery(job), Settle.RETRY)])

    async def resolve(self, reference: Mapping[str, Any]) -> Any:
        if self._resolve is None:
            raise UnknownIdError("order data", str(reference.get("sha256")))
        return await self._resolve(reference)

    async def declare(self, queue: str, schema: Mapping[str, Any]) -> None:
        if self._declare is not None:
            await self._declare(queue, schema)

    async def keep(self, job: Job) -> bool:
        return True

    async def announce(self, kind: str, said: dict[str, Any]) -> WorkerNews | None:
        """In the control queue. The worker has a queue of its own, where it is told what it has to do."""
        about = dict(said)
        worker = about.pop("worker")
        if kind == "registro":
            about["fila_propria"] = names.worker_queue(worker)
            self._tenant = tenant_of(next(iter(said["filas"]), ""))
        message = Outgoing(in_tenant(self._tenant, names.WORKERS), control(kind, worker, about), "")
        await publish_confirmed(self._broker, [message])
        return None

    async def told(self, worker: str, wait: float) -> WorkerNews:
        """From the queue of the worker; what is not for it is passed over. An offer that comes again was begun here
        already, as far as is known, so that it has no end any more."""
        queue = in_tenant(self._tenant, names.worker_queue(worker))
        deliveries = await self._broker.fetch(queue, limit=10, wait=wait)
        told, orders = WorkerNews(), [(one, note) for one in deliveries if (note := note_of(one.headers)) is not None]
        if orders:
            offered = [delivery for delivery, _ in orders]
            good = offered if self._verifier is None else await self._verified(self._verifier, offered)
            told.offers = [
                Job(note.queue, one.body, one, None if one.redelivered else note)
                for one, note in orders
                if any(one is each for each in good)
            ]
            deliveries = [one for one in deliveries if not any(one is each for each in offered)]
        for delivery in deliveries:
            order = order_of(delivery.body)
            told.no_offers = told.no_offers or order == "sem_ofertas"
            told.register_again = told.register_again or order == "registrar"
            told.drain = {"drenar": True, "retomar": False}.get(order, told.drain)
        await self._broker.settle([Settlement(delivery) for delivery in deliveries])
        return told

    async def pass_over(self, offers: Sequence[Job]) -> None:
        await self._broker.settle([Settlement(_delivery(job)) for job in offers])

    async def close(self) -> None:
        if self._own:
            await self._broker.close()


def _delivery(job: Job) -> Delivery:
    delivery: Delivery = job.handle
    return delivery
