"""Mutants of failover: two brokers as one, each of which goes away by itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.ports.broker import ALL_CONFIRMED, Delivery, Outgoing, PublishReport, Settlement
from oraculo.simulation.mutants import Mutant, patched

_KINDS = ("brokers-unmasked", "brokers-masked")
_publish_to = FailoverBroker._publish_to


def only_one_is_read() -> AbstractContextManager[None]:
    """Consuming switches together with publishing: what is on the other side is stranded."""

    async def fetch(self: FailoverBroker, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        return await self._fetch_from(next(iter(self.members)), queue, limit, wait)

    return patched((FailoverBroker, "fetch", fetch))


def settled_at_the_wrong_one() -> AbstractContextManager[None]:
    async def settle(self: FailoverBroker, settlements: Sequence[Settlement]) -> None:
        await self.members[self.active].settle(settlements)

    return patched((FailoverBroker, "settle", settle))


def a_failed_publish_counts_as_done() -> AbstractContextManager[None]:
    """Handed to the next broker, and whatever that one says is not heard."""

    async def publish_to(self: FailoverBroker, name: str, messages: Sequence[Outgoing]) -> PublishReport:
        report = await _publish_to(self, name, messages)
        return report if report.complete else ALL_CONFIRMED

    return patched((FailoverBroker, "_publish_to", publish_to))


def what_is_too_much_is_dropped() -> AbstractContextManager[None]:
    """Two brokers answered at once, and only as much as was asked for is kept."""
    return patched((FailoverBroker, "_keep", lambda *_: None))


MUTANTS = [
    Mutant("only one broker is read", only_one_is_read, _KINDS, 50),
    Mutant("settled at the wrong broker", settled_at_the_wrong_one, _KINDS, 60),
    Mutant("a failed publish counts as done", a_failed_publish_counts_as_done, _KINDS, 60),
    Mutant("what is too much is dropped", what_is_too_much_is_dropped, _KINDS, 20, 220),
]
