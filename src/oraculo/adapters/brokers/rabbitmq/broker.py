"""RabbitMQ: a queue is a queue on the default exchange, used as it is when it exists.

Two connections, one that publishes and one that consumes; the modules beside this one (rabbitmq_*.py) hold one idea
each, and this one holds the verbs. docs/brokers/rabbitmq.md says what is promised.
"""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.adapters.brokers.rabbitmq.consume import ConsumeLane
from oraculo.adapters.brokers.rabbitmq.inbox import Inbox
from oraculo.adapters.brokers.rabbitmq.link import Link
from oraculo.adapters.brokers.rabbitmq.publish import Publisher
from oraculo.adapters.brokers.rabbitmq.queues import Queues
from oraculo.adapters.brokers.rabbitmq.url import CLASSIC, QUORUM, parse
from oraculo.errors import BrokerError
from oraculo.ports.broker import Backlog, Delivery, Health, Outgoing, Settle, Settlement
from oraculo.wire import names

DURABILITY = {QUORUM: "power-safe", CLASSIC: "crash-safe"}


class RabbitMQBroker:
    scheme = "amqp"
    volatile = False

    def __init__(self, url: str) -> None:
        options = parse(url)
        self._out = Link(options, "publish")
        self._in = Link(options, "consume")
        self._queues = Queues(self._in)
        self._publisher = Publisher(self._out, self._queues)
        self._inboxes: dict[str, Inbox] = {}
        self._seconds = options.confirm_timeout

    def expect(self, queue: str) -> None:
        self._publisher.expected.append(queue)

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        await self._publisher.publish(messages)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        inbox = self._inboxes.get(queue)
        if inbox is None:
            inbox = self._inboxes[queue] = Inbox(queue, self._in, self._queues, self._forget)
        return await inbox.fetch(limit, wait)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        acks: dict[ConsumeLane, list[int]] = {}
        for settlement in settlements:
            lane, tag = settlement.delivery.tag
            if settlement.verdict is Settle.ACK:
                acks.setdefault(lane, []).append(tag)
            elif settlement.delay > 0:
                lane.give_back_later(tag, settlement.delay)
            else:
                lane.give_back([tag])
        for lane, tags in acks.items():
            lane.ack(tags)

    async def backlog(self, queue: str) -> Backlog:
        waiting = await self._queues.waiting(queue) or 0
        inbox = self._inboxes.get(queue)
        return Backlog(waiting + (len(inbox.ready) if inbox else 0))

    async def durability(self) -> str:
        """Of the queue that the answers come in on. Nobody can say it of a server that does not answer, or of another
        product that speaks the same protocol."""
        try:
            wire = await self._in.wire(self._seconds)
            kind = await self._queues.kind(names.RESULTS)
        except BrokerError:
            return "best-effort"
        product = (wire.server_properties or {}).get("product")
        return DURABILITY.get(kind, "best-effort") if product == "RabbitMQ" else "best-effort"

    def health(self) -> Health:
        links = [link for link in (self._out, self._in) if link.used]
        return Health(
            connected=bool(links) and all(link.up for link in links),
            error="; ".join(dict.fromkeys(link.error for link in links if link.error)),
            reconnects=sum(link.reconnects for link in links),
        )

    async def reset(self) -> None:
        for link in (self._out, self._in):
            await link.reset()

    async def close(self) -> None:
        inboxes = list(self._inboxes.values())
        for inbox in inboxes:
            inbox.stop()
        for inbox in inboxes:
            await inbox.stopped()
        for link in (self._out, self._in):
            await link.close()
        self._inboxes.clear()

    def _forget(self, inbox: Inbox) -> None:
        """Nobody fetches from it, and nothing of it is here."""
        if self._inboxes.get(inbox.queue) is inbox:
            del self._inboxes[inbox.queue]
