"""Port: breakers of destinations, which every process that sends orders knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from oraculo.core.breaking import DestinationBreaker, Order
from oraculo.ports.system_events import SystemEvent

BREAKER_CURSOR = "breakers"  # of the projection that counts failures


class Breakers(Protocol):
    async def breakers(self) -> list[DestinationBreaker]:
        """List them, by queue."""
        ...

    async def put_breaker(self, breaker: DestinationBreaker, event: SystemEvent | None = None) -> bool:
        """Write one, and the event with it, if its version is the one after that in the store; False otherwise."""
        ...


class BreakerGate(Protocol):
    """What senders of orders ask."""

    @property
    def any_known(self) -> bool:
        """False while `lets_through` says yes to every order: no destination has failed yet."""
        ...

    def lets_through(self, queue: str, order: Order) -> bool:
        """Return whether this order may go now."""
        ...

    def listen(self, released: Callable[[], None], candidate: Callable[[str], Awaitable[Order | None]]) -> None:
        """Call `released` when something may go that was held. `candidate` names an order of a queue that is held and
        could go out as a probe."""
        ...
