"""How much goes to each queue of workers and comes back: counted from commits, so that every engine gives the same."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from time import monotonic

from oraculo.core import events as ev
from oraculo.core.step import Step
from oraculo.ports.journal import Batch
from oraculo.ports.observer import EventsByType

WINDOW_S, SLICE_S = 60.0, 5.0  # rates are of the last minute, in slices
QUEUES_MAX = 500  # that are told apart: whoever submits chooses their names
OTHER_QUEUES = "outras"
FAILURES = (ev.AttemptFailed, ev.TicketFailed)


class OneWay:
    """One direction: how many for each queue, ever and in the slices of the last minute."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.total: Counter[str] = Counter()
        self._now = now
        self._began = now()
        self._slices: deque[tuple[int, Counter[str]]] = deque()

    def add(self, counts: Mapping[str, int]) -> None:
        number = int(self._now() / SLICE_S)
        if not self._slices or self._slices[-1][0] != number:
            self._slices.append((number, Counter()))
            self._forget(number)
        total, of_slice = self.total, self._slices[-1][1]
        for queue, count in counts.items():
            known = queue if queue in total or len(total) < QUEUES_MAX else OTHER_QUEUES
            total[known] += count
            of_slice[known] += count

    def per_second(self, queue: str) -> float:
        """Over the last minute, or since the start where that is less ago."""
        self._forget(int(self._now() / SLICE_S))
        length = min(WINDOW_S, max(SLICE_S, self._now() - self._began))
        return sum(counts[queue] for _, counts in self._slices) / length

    def _forget(self, number: int) -> None:
        while self._slices and self._slices[0][0] <= number - WINDOW_S / SLICE_S:
            self._slices.popleft()


class QueueTraffic:
    """An observer of commits. `sent` are orders that a broker has confirmed, `answered` the answers that counted."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.sent = OneWay(now)
        self.answered = OneWay(now)

    def saw(self, batch: Batch, events: EventsByType) -> None:
        sent: dict[str, int] = {}  # plain ones: most commits are small, and a Counter costs more than what it counts
        answered: dict[str, int] = {}
        for step, event in events.get(ev.DispatchConfirmed, ()):
            tasks = step.state.plan.tasks
            for position, _attempt in event.tickets:
                queue = tasks[position].queue
                sent[queue] = sent.get(queue, 0) + 1
        for step, event in events.get(ev.TicketConcluded, ()):
            self._answer(step, event.ticket, event.attempt, sent, answered)
        for kind in FAILURES:
            for step, event in events.get(kind, ()):
                if event.digest:  # else nobody answered: it was late, or refused
                    self._answer(step, event.ticket, event.attempt, sent, answered)
        if sent:
            self.sent.add(sent)
        if answered:
            self.answered.add(answered)

    @staticmethod
    def _answer(step: Step, position: int, attempt: int, sent: dict[str, int], answered: dict[str, int]) -> None:
        """An answer that came before its confirmation was recorded says that the order had arrived."""
        queue = step.state.plan.tasks[position].queue
        answered[queue] = answered.get(queue, 0) + 1
        if not step.state.tickets[position].confirmed >> attempt & 1:
            sent[queue] = sent.get(queue, 0) + 1
