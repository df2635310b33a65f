"""The queues that are the orchestrator's own: no worker leases them, and no request has messages sent there.

A worker that leased one would take answers, plans or approvals from the orchestrator; a request that named one as a
destination would have the orchestrator send itself messages that others may not send.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from oraculo.core.tenants import local_name
from oraculo.wire import names


class ReservedQueues:
    """`read` gives the queues that the orchestrator takes messages from; `topics` are those that it writes to besides
    the queues of workers."""

    def __init__(self, read: Callable[[], Collection[str]], topics: Collection[str] = ()) -> None:
        self._read = read
        self._topics = frozenset(topics)

    def refuse_lease(self, queue: str) -> str | None:
        """Why messages of this queue are not for workers; None when they are."""
        if queue.endswith(names.DLQ):
            return f"{queue} holds dead letters; look at them under /api/v1/dead-letters"
        local = local_name(queue)
        if local == names.PROBE or queue in self._read() or (local is not queue and names.is_own(local)):
            return f"{queue} is read by the orchestrator; workers lease from their own queue"
        return None

    def refuse_writing(self, queue: str) -> str | None:
        """Why no request may have messages sent to this queue; None when it may."""
        if queue in self._topics or self.refuse_lease(queue) is not None:
            return f"the queue {queue!r} belongs to the orchestrator; choose another name"
        return None
