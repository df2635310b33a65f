"""Orders that may not go now: their destination is paused, or its breaker is open. They are owed, and go later."""

from __future__ import annotations

from collections.abc import Callable

from oraculo.runtime.effects.owed import OwedOrder


class HeldOrders:
    """`holds` says of an order whether it may not go now."""

    def __init__(self, holds: Callable[[OwedOrder], bool]) -> None:
        self._holds = holds
        self._queues: dict[str, dict[tuple[int, int, int], OwedOrder]] = {}

    def __len__(self) -> int:
        return sum(len(orders) for orders in self._queues.values())

    def take(self, owed: OwedOrder) -> bool:
        """Keep an order if it may not go now; return whether it was kept."""
        if not self._holds(owed):
            return False
        self._queues.setdefault(owed.queue, {})[owed.order] = owed
        return True

    def has(self, run: int, position: int) -> bool:
        """Return whether the order of a ticket is kept here."""
        return any((run, position) == order[:2] for orders in self._queues.values() for order in orders)

    @property
    def orders(self) -> list[OwedOrder]:
        return [one for orders in self._queues.values() for one in orders.values()]

    def of(self, queue: str) -> list[OwedOrder]:
        """The orders that are kept for a queue, the oldest first."""
        return list(self._queues.get(queue, {}).values())

    def drop(self, owed: OwedOrder) -> None:
        """Forget an order that is not wanted any more."""
        self._queues.get(owed.queue, {}).pop(owed.order, None)

    def release(self) -> list[OwedOrder]:
        """Return the orders that may go now."""
        released = [one for one in self.orders if not self._holds(one)]
        for one in released:
            del self._queues[one.queue][one.order]
        self._queues = {queue: orders for queue, orders in self._queues.items() if orders}
        return released
