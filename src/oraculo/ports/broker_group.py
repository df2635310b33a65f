"""Port: several brokers that look like one, and what a broker inside the process can tell at once.

`group_of` and `process_local` answer for any broker, so that a caller need not know how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from oraculo.ports.broker import Broker


class CircuitBreaker(Protocol):
    """The judgement on one member: `open` while messages are published elsewhere because this one failed."""

    error: str

    @property
    def open(self) -> bool: ...


@runtime_checkable
class BrokerGroup(Protocol):
    """Brokers by name. Messages are read from all of them and published to `active`, and to those that are `apart`
    because some queues are on them alone. `epoch` counts how often `active` changed."""

    members: Mapping[str, Broker]
    apart: frozenset[str]
    breakers: Mapping[str, CircuitBreaker]

    @property
    def active(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    def probed(self, name: str, ok: bool, error: str = "") -> None:
        """Take note of the outcome of an end-to-end probe of a member."""
        ...

    def doubted(self, name: str) -> bool:
        """True if more probes of this member are wanted: it is left alone until they go through."""
        ...


class SingleBroker:
    """A group with one member that is always published to."""

    epoch = 0

    def __init__(self, broker: Broker) -> None:
        self.members: Mapping[str, Broker] = {broker.scheme: broker}
        self.active = broker.scheme
        self.apart: frozenset[str] = frozenset()
        self.breakers: Mapping[str, CircuitBreaker] = {}

    def probed(self, name: str, ok: bool, error: str = "") -> None:
        """There is no other broker to switch to."""

    def doubted(self, name: str) -> bool:
        return False


def group_of(broker: Broker) -> BrokerGroup:
    """The broker itself if it is a group, else a group that has it as its only member."""
    return broker if isinstance(broker, BrokerGroup) else SingleBroker(broker)


@runtime_checkable
class ProcessLocal(Protocol):
    """A broker inside the process: it tells what waits without being probed."""

    def depths(self) -> dict[str, tuple[int, int]]:
        """Queue → (messages that wait, messages that were taken and not settled)."""
        ...

    def ages(self) -> dict[str, float]:
        """Queue → age of its oldest message in seconds, where there is one."""
        ...


def process_local(broker: Broker) -> ProcessLocal | None:
    """The member that is inside the process, if there is one."""
    members = group_of(broker).members.values()
    return next((member for member in members if isinstance(member, ProcessLocal)), None)
