"""What belongs to one connection and ends with it: streams, confirmations, consumers, and what was handed out."""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.adapters.brokers.nats_jetstream.connection import Connection
from oraculo.adapters.brokers.nats_jetstream.consume import JetStreamConsumer
from oraculo.adapters.brokers.nats_jetstream.publish import Publisher
from oraculo.adapters.brokers.nats_jetstream.streams import Streams
from oraculo.adapters.brokers.nats_jetstream.url import Options


class NatsSession:
    """One connection in use. `held`: what was handed out and is not settled → the round in which it was."""

    def __init__(self, connection: Connection, options: Options) -> None:
        self.connection = connection
        self.streams = Streams(connection, options)
        self.publisher = Publisher(connection)
        self.queues: dict[str, JetStreamConsumer] = {}
        self.held: dict[bytes, int] = {}
        self.round = 0
        self.lease = options.lease

    @property
    def alive(self) -> bool:
        return not self.connection.lost.done()

    async def queue_consumer(self, queue: str) -> JetStreamConsumer:
        """The consumer of a queue, made at the first fetch."""
        stream = await self.streams.with_consumer(queue)
        stream.busy = True
        self.lease = min(self.lease, stream.lease)
        found = self.queues.get(queue)
        if found is None:
            found = JetStreamConsumer(queue, self.connection, stream.name, stream.consumer, self.nak)
            self.queues[queue] = found
        return found

    def nak(self, tags: Sequence[bytes]) -> None:
        self.connection.send(b"".join([b"PUB %b 4\r\n-NAK\r\n" % tag for tag in tags]))

    def renew(self) -> None:
        """Renew the leases of all deliveries that were held a round ago already."""
        old = [tag for tag, when in self.held.items() if when < self.round]
        self.round += 1
        if old:
            self.connection.send(b"".join([b"PUB %b 4\r\n+WPI\r\n" % tag for tag in old]))

    def give_back(self) -> None:
        """Let other processes have everything that was taken and not settled."""
        for queue in self.queues.values():
            queue.give_back()
        self.nak(list(self.held))
        self.held.clear()

    def stop(self) -> None:
        """Forget what is held and wake every fetch: the connection is gone, or about to be."""
        self.held.clear()
        for queue in self.queues.values():
            queue.stop()
