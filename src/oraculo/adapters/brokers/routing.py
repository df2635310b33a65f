"""Two brokers as one: some queues are on the second, all others on the first.

The topics of Fluxo C are on the Kafka of those who write decisions and read tickets; everything else is on whichever
broker the workers use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from typing import Any

from oraculo.adapters.brokers.failover import STRENGTH
from oraculo.errors import BrokerError, BrokerUnavailableError
from oraculo.ports.broker import Backlog, Broker, Delivery, Health, Outgoing, Settlement, expect
from oraculo.wire import names

APART = "fluxo-c"


class RoutingBroker:
    """`queues` are those of `other`, with their dead-letter queues. It forgets what `main` forgets. What tells several
    brokers apart elsewhere (`members`, `active`, `breakers`, `epoch`) is main's, with the other as one more member."""

    def __init__(self, main: Broker, other: Broker, queues: Container[str]) -> None:
        self.main = main
        self.other = other
        self._queues = queues
        ours: dict[str, Broker] = getattr(main, "members", {main.scheme: main})
        self.name = other.scheme if other.scheme not in ours else f"{other.scheme}-{APART}"
        self.members = {**ours, self.name: other}
        self.apart = frozenset((self.name,))  # published to as well, whichever of the others is
        self.scheme = f"{main.scheme}+{other.scheme}"
        self.volatile = main.volatile
        self.breakers: dict[str, Any] = getattr(main, "breakers", {})
        if hasattr(main, "depths"):  # what a broker inside the process can tell at once
            self.depths, self.ages = main.depths, main.ages  # type: ignore[attr-defined]

    def forgets(self, queue: str) -> bool:
        """When this process ends, what waits there is gone."""
        return self.volatile and not self._apart(queue)

    def expect(self, queue: str) -> None:
        expect(self._of(queue), queue)

    @property
    def active(self) -> str:
        return str(getattr(self.main, "active", self.main.scheme))

    @property
    def epoch(self) -> int:
        return int(getattr(self.main, "epoch", 0))

    def probed(self, name: str, ok: bool, error: str = "") -> None:
        if name in self.breakers:
            self.main.probed(name, ok, error)  # type: ignore[attr-defined]

    def doubted(self, name: str) -> bool:
        return name in self.breakers and bool(self.breakers[name].open)

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """When the other one fails, its messages have to wait (`works`), and hold up nobody else's."""
        apart = [message for message in messages if self._apart(message.queue)]
        if not apart:
            await self.main.publish(messages)
            return
        rest = [message for message in messages if not self._apart(message.queue)]
        main, other = await asyncio.gather(_publish(self.main, rest), _publish(self.other, apart))
        if other is not None:
            other.works = True
        _raise([error for error in (main, other) if error is not None])

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
        return min(await self.main.durability(), await self.other.durability(), key=STRENGTH.index)

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


async def _publish(broker: Broker, messages: Sequence[Outgoing]) -> BrokerUnavailableError | None:
    """What went wrong, with the messages that it concerns: the others' fate is their own."""
    if not messages:
        return None
    try:
        await broker.publish(messages)
    except BrokerUnavailableError as error:
        if error.unconfirmed is None:
            refused = {id(message) for message, _ in error.refused}
            error.unconfirmed = [message for message in messages if id(message) not in refused]
        return error
    except BrokerError as error:
        return BrokerUnavailableError(str(error), unconfirmed=messages)
    return None


def _raise(errors: Sequence[BrokerUnavailableError]) -> None:
    if errors:
        raise BrokerUnavailableError(
            "; ".join(str(error) for error in errors),
            unconfirmed=[message for error in errors for message in error.unconfirmed or ()],
            refused=[pair for error in errors for pair in error.refused],
            works=all(error.works for error in errors),
        )
