"""Orders that wait to be published, taken in turns: a run that owes many does not hold up the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from oraculo.runtime.effects.owed import OwedOrder

SHARE_MAX_ORDERS = 50  # that a run is given in one turn


class FairQueue:
    """The orders of one run stay in the order in which they were added."""

    def __init__(self) -> None:
        self._runs: dict[int, deque[OwedOrder]] = {}  # in the order of their turns
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, owed: OwedOrder) -> None:
        orders = self._runs.get(owed.run)
        if orders is None:
            orders = self._runs[owed.run] = deque()
        orders.append(owed)
        self._count += 1

    def extend(self, owed: Iterable[OwedOrder]) -> None:
        for one in owed:
            self.add(one)

    def take(self, limit: int) -> list[OwedOrder]:
        """Return the first orders of the run whose turn it is; what it has left comes after all others."""
        run = next(iter(self._runs))
        orders = self._runs.pop(run)
        share = [orders.popleft() for _ in range(min(limit, SHARE_MAX_ORDERS, len(orders)))]
        if orders:
            self._runs[run] = orders
        self._count -= len(share)
        return share

    def upcoming(self, limit: int) -> Iterator[OwedOrder]:
        """The orders whose turn comes next, without taking them."""
        shares = (islice(orders, SHARE_MAX_ORDERS) for orders in self._runs.values())
        return islice(chain.from_iterable(shares), limit)

    def clear(self) -> list[OwedOrder]:
        """Take everything."""
        orders = [one for orders in self._runs.values() for one in orders]
        self._runs.clear()
        self._count = 0
        return orders

    def put_back(self, owed: Sequence[OwedOrder]) -> None:
        """Take back the end of a share that was not published: it is the first of its run again."""
        if owed:
            self._runs.setdefault(owed[0].run, deque()).extendleft(reversed(owed))
            self._count += len(owed)

    @property
    def oldest(self) -> OwedOrder | None:
        """The first order of the run that has waited longest for its turn."""
        return next((orders[0] for orders in self._runs.values()), None)
