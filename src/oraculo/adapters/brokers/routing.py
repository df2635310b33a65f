"""Two brokers as one: some queues are on the second, all others on the first.

The topics of Fluxo C are on the Kafka cluster that decisions come from; everything else is on the broker that the
workers use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence

from oraculo.adapters.brokers.failover import DURABILITY_ORDER
from oraculo.ports.broker import (
    ALL_CONFIRMED,
    Backlog,
    Broker,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Settlement,
)
from oraculo.ports.broker_group import BrokerGroup, group_of
from oraculo.wire import names

APART = "fluxo-c"


class RoutingBroker(Broker, BrokerGroup):
    """`queues` are those of `other`, with their dead-letter queues. It forgets what `main` forgets. As a group it is
    main's, with the other one as one more member."""

    def __init__(self, main: Broker, other: Broker, queues: Container[str]) -> None:
        self.main = main
        self.other = other
        self._queues = queues
        self._group = group_of(main)
        ours = self._group.members
        self.name = other.scheme if other.scheme not in ours else f"{other.scheme}-{APART}"
        self.members = {**ours, self.name: other}
        self.apart = frozenset((self.name,))
        self.scheme = f"{main.scheme}+{other.scheme}"
        self.traits = main.traits
        self.breakers = self._group.breakers

    def forgets(self, queue: str) -> bool:
        return self._of(queue).forgets(queue)

    def expect(self, queue: str) -> None:
        self._of(queue).expect(queue)

    @property
    def active(self) -> str:
        return self._group.active

    @property
    def epoch(self) -> int:
        return self._group.epoch

    def probed(self, name: str, ok: bool, error: str = "") -> None:
        if name in self.breakers:
            self._group.probed(name, ok, error)

    def doubted(self, name: str) -> bool:
        return name in self.breakers and self._group.doubted(name)

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        """When the other one fails, its messages have to wait as if they had no queue, and hold up no others."""
        apart = [message for message in messages if self._apart(message.queue)]
        if not apart:
            return await self.main.publish(messages)
        rest = [message for message in messages if not self._apart(message.queue)]
        main, other = await asyncio.gather(_publish(self.main, rest), _publish(self.other, apart))
        return PublishReport(
            main.unconfirmed,
            [*main.no_queue, *other.no_queue, *other.unconfirmed],
            [*main.refused, *other.refused],
            "; ".join(filter(None, (main.reason, other.reason))),
            (*main.no_room, *other.no_room),
        )

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        apart = self._apart(queue)
        taken = await (self.other if apart else self.main).fetch(queue, limit=limit, wait=wait)
        for delivery in taken:
            delivery.broker = self.name if apart else delivery.broker or self.main.scheme
        return taken

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        shares: dict[bool, list[Settlement]] = {}
        for settlement in settlements:
            shares.setdefault(self._apart(settlement.delivery.queue), []).append(settlement)
        outcomes = await asyncio.gather(
            *((self.other if apart else self.main).settle(share) for apart, share in shares.items()),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def backlog(self, queue: str) -> Backlog:
        return await self._of(queue).backlog(queue)

    async def durability(self) -> str:
        """The weaker of the two."""
        return min(await self.main.durability(), await self.other.durability(), key=DURABILITY_ORDER.index)

    def health(self) -> Health:
        main, other = self.main.health(), self.other.health()
        said = (main.error, f"{self.name}: {other.error}" if other.error else "")
        return Health(
            main.connected and other.connected, "; ".join(filter(None, said)), main.reconnects + other.reconnects
        )

    async def reset(self) -> None:
        await asyncio.gather(self.main.reset(), self.other.reset())

    async def close(self) -> None:
        await asyncio.gather(self.main.close(), self.other.close())

    def _apart(self, queue: str) -> bool:
        return queue.removesuffix(names.DLQ) in self._queues

    def _of(self, queue: str) -> Broker:
        return self.other if self._apart(queue) else self.main


async def _publish(broker: Broker, messages: Sequence[Outgoing]) -> PublishReport:
    return await broker.publish(messages) if messages else ALL_CONFIRMED
