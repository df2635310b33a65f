"""RabbitMQ: a queue is a queue on the default exchange, used as it is when it exists.

Two connections, one that publishes and one that consumes; the modules beside this one hold one idea each, and
this one holds the verbs. docs/brokers/rabbitmq.md says what is promised.
"""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.adapters.brokers.rabbitmq.connection import Connection
from oraculo.adapters.brokers.rabbitmq.consume import AmqpConsumer
from oraculo.adapters.brokers.rabbitmq.consume_channel import ConsumeChannel
from oraculo.adapters.brokers.rabbitmq.publish import Publisher
from oraculo.adapters.brokers.rabbitmq.queues import Queues
from oraculo.adapters.brokers.rabbitmq.url import CLASSIC, QUORUM, parse
from oraculo.errors import BrokerError
from oraculo.ports.broker import (
    Backlog,
    Broker,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Settle,
    Settlement,
)
from oraculo.wire import names

DURABILITY = {QUORUM: "power-safe", CLASSIC: "crash-safe"}


class RabbitMQBroker(Broker):
    scheme = "amqp"
    traits = BrokerTraits()

    def __init__(self, url: str) -> None:
        options = parse(url)
        self._out = Connection(options, "publish")
        self._in = Connection(options, "consume")
        self._queues = Queues(self._in)
        self._publisher = Publisher(self._out, self._queues)
        self._consumers: dict[str, AmqpConsumer] = {}
        self._timeout_s = options.confirm_timeout

    def expect(self, queue: str) -> None:
        self._publisher.expected.append(queue)

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        return await self._publisher.publish(messages)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        consumer = self._consumers.get(queue)
        if consumer is None:
            consumer = self._consumers[queue] = AmqpConsumer(queue, self._in, self._queues, self._forget)
        return await consumer.fetch(limit, wait)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        acks: dict[ConsumeChannel, list[int]] = {}
        for settlement in settlements:
            channel, tag = settlement.delivery.tag
            if settlement.verdict is Settle.ACK:
                acks.setdefault(channel, []).append(tag)
            elif settlement.delay > 0:
                channel.give_back_later(tag, settlement.delay)
            else:
                channel.give_back([tag])
        for channel, tags in acks.items():
            channel.ack(tags)

    async def backlog(self, queue: str) -> Backlog:
        waiting, consumers = await self._queues.standing(queue) or (0, 0)
        consumer = self._consumers.get(queue)
        return Backlog(waiting + (len(consumer.inbox.ready) if consumer else 0), consumers=consumers)

    async def durability(self) -> str:
        """The class of the queue that answers come to; `best-effort` if the server does not answer, or is another
        product that speaks the same protocol."""
        try:
            transport = await self._in.transport(self._timeout_s)
            kind = await self._queues.kind(names.RESULTS)
        except BrokerError:
            return "best-effort"
        product = (transport.server_properties or {}).get("product")
        return DURABILITY.get(kind, "best-effort") if product == "RabbitMQ" else "best-effort"

    def health(self) -> Health:
        found = [one.health() for one in (self._out, self._in) if one.used]
        return Health(
            connected=bool(found) and all(one.connected for one in found),
            error="; ".join(dict.fromkeys(one.error for one in found if one.error)),
            reconnects=sum(one.reconnects for one in found),
        )

    async def reset(self) -> None:
        for connection in (self._out, self._in):
            await connection.reset()

    async def close(self) -> None:
        consumers = list(self._consumers.values())
        for consumer in consumers:
            consumer.stop()
        for consumer in consumers:
            await consumer.stopped()
        for connection in (self._out, self._in):
            await connection.close()
        self._consumers.clear()

    def _forget(self, consumer: AmqpConsumer) -> None:
        """Drop a consumer that no fetch uses and that holds nothing."""
        if self._consumers.get(consumer.queue) is consumer:
            del self._consumers[consumer.queue]
