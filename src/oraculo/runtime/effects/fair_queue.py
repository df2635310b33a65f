"""Orders that wait to be published, taken in turns between tenants, and between the runs of a tenant: a tenant or a run
that owes many does not hold up the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from oraculo.core.tenants import tenant_of
from oraculo.runtime.effects.owed import OwedOrder

SHARE_MAX_ORDERS = 50  # that a run is given in one turn


class FairQueue:
    """The orders of one run stay in the order in which they were added."""

    def __init__(self) -> None:
        self._orders: dict[int, deque[OwedOrder]] = {}  # run → its orders
        self._turns: dict[str, dict[int, None]] = {}  # tenant → its runs, both in the order of their turns
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, owed: OwedOrder) -> None:
        self._of_run(owed).append(owed)
        self._count += 1

    def extend(self, owed: Iterable[OwedOrder]) -> None:
        for one in owed:
            self.add(one)

    def take(self, limit: int) -> list[OwedOrder]:
        """Return the first orders of the run whose turn it is; what it has left comes after all others."""
        tenant = next(iter(self._turns))
        runs = self._turns.pop(tenant)
        run = next(iter(runs))
        del runs[run]
        orders = self._orders[run]
        share = [orders.popleft() for _ in range(min(limit, SHARE_MAX_ORDERS, len(orders)))]
        if orders:
            runs[run] = None
        else:
            del self._orders[run]
        if runs:
            self._turns[tenant] = runs
        self._count -= len(share)
        return share

    def upcoming(self, limit: int) -> Iterator[OwedOrder]:
        """The orders whose turn comes next, without taking them."""
        return islice(self._in_turns(), limit)

    def clear(self) -> list[OwedOrder]:
        """Take everything."""
        orders = [one for orders in self._orders.values() for one in orders]
        self._orders.clear()
        self._turns.clear()
        self._count = 0
        return orders

    def put_back(self, owed: Sequence[OwedOrder]) -> None:
        """Take back the end of a share that was not published: it is the first of its run again."""
        if owed:
            self._of_run(owed[0]).extendleft(reversed(owed))
            self._count += len(owed)

    @property
    def oldest(self) -> OwedOrder | None:
        """The first order of the run that has waited longest for its turn."""
        return next(self._in_turns(), None)

    def _of_run(self, owed: OwedOrder) -> deque[OwedOrder]:
        """The orders of its run, which has a turn from now on."""
        orders = self._orders.get(owed.run)
        if orders is None:
            orders = self._orders[owed.run] = deque()
            self._turns.setdefault(tenant_of(owed.state.correlation_id), {})[owed.run] = None
        return orders

    def _in_turns(self) -> Iterator[OwedOrder]:
        """One share of each run: the first runs of all tenants, then their second ones."""
        waiting = deque(iter(runs) for runs in self._turns.values())
        while waiting:
            runs = waiting.popleft()
            run = next(runs, None)
            if run is not None:
                waiting.append(runs)
                yield from islice(self._orders[run], SHARE_MAX_ORDERS)
