"""Orders whose destination is paused. They are owed, and go when it is not paused any more."""

from __future__ import annotations

from collections.abc import Callable

from oraculo.runtime.effects.owed import OwedOrder


class HeldOrders:
    """`holds` says which queues are paused."""

    def __init__(self, holds: Callable[[str], bool]) -> None:
        self._holds = holds
        self._queues: dict[str, dict[tuple[int, int, int], OwedOrder]] = {}

    def __len__(self) -> int:
        return sum(len(orders) for orders in self._queues.values())

    def take(self, owed: OwedOrder) -> bool:
        """Keep an order if its destination is paused; return whether it was kept."""
        if not self._holds(owed.queue):
            return False
        self._queues.setdefault(owed.queue, {})[owed.order] = owed
        return True

    def has(self, run: int, position: int) -> bool:
        """Return whether the order of a ticket is kept here."""
        return any((run, position) == order[:2] for orders in self._queues.values() for order in orders)

    @property
    def orders(self) -> list[OwedOrder]:
        return [one for orders in self._queues.values() for one in orders.values()]

    def release(self) -> list[OwedOrder]:
        """Return the orders of destinations that are not paused any more."""
        opened = [queue for queue in self._queues if not self._holds(queue)]
        return [one for queue in opened for one in self._queues.pop(queue).values()]
