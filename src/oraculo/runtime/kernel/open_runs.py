"""How many orchestrations are open, and the queues that orchestrations use."""

from __future__ import annotations

from oraculo.errors import BusyError
from oraculo.runtime.kernel.transaction import Transaction
from oraculo.wire import names


class OpenRuns:
    """Counts orchestrations that have not ended; of those that others open in a shared store it is told (`count`)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.count = 0
        self.queues: set[str] = {names.RESULTS, names.REQUESTS}

    def committed(self, transaction: Transaction) -> None:
        for done in transaction.steps:
            if done.first == 1:
                self.count += 1
                self.queues.update(done.state.plan.queues)
        self.count -= len(transaction.closed)

    def has_room(self) -> bool:
        return self.count < self._limit

    def admit(self, count: int) -> None:
        """Raise BusyError when so many more may not be opened now."""
        if self.count + count > self._limit:
            raise BusyError(f"{self.count} orchestrations are open; at most {self._limit} are allowed")
