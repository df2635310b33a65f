"""How orders come to a worker and answers go: the protocol, and its form over a broker. `http.py` has the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from oraculo.core.tenants import in_tenant, tenant_of
from oraculo.core.vocabulary import Kind
from oraculo.errors import UnknownIdError
from oraculo.ports.broker import Broker, Delivery, Outgoing, Settle, Settlement, publish_confirmed
from oraculo.wire import names, quarantine

Resolve = Callable[[Mapping[str, Any]], Awaitable[Any]]  # what an order refers to → the data


@dataclass(slots=True)
class Job:
    """One order that was taken: its bytes, and what the transport needs to settle it."""

    queue: str
    body: bytes
    handle: Any


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

    async def keep(self, job: Job) -> bool:
        """Say that the work goes on. False when the answer is not wanted any more."""
        ...

    keep_every: float | None  # seconds between two `keep`s; None when the transport needs none
    take_grace: float  # seconds that a `take` under way gets at a stop, because cancelling it may strand an order

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
        self._taken.update(delivery.broker for delivery in deliveries)

    def taken(self, broker: str | None = None) -> int:
        return self._taken.total() if broker is None else self._taken[broker] + self._taken[""]


class BrokerTransport:
    """Orders and answers over a broker, or over the in-process one."""

    keep_every: float | None = None
    take_grace = 0.0

    def __init__(self, broker: Broker, *, own: bool = False, resolve: Resolve | None = None) -> None:
        self._broker = broker
        self._own = own
        self._resolve = resolve
        self.watches: dict[str, QueueWatch] = {}

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]:
        watch = self.watches.get(queue) or self.watches.setdefault(queue, QueueWatch(queue))
        watch.asking = True
        try:
            deliveries = await self._broker.fetch(queue, limit=limit, wait=wait)
        finally:
            watch.asking = False
        watch.heard(deliveries)
        return [Job(queue, delivery.body, delivery) for delivery in deliveries]

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

    async def keep(self, job: Job) -> bool:
        return True

    async def close(self) -> None:
        if self._own:
            await self._broker.close()


def _delivery(job: Job) -> Delivery:
    delivery: Delivery = job.handle
    return delivery
