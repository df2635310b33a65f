"""Workers for a ticket: who may have it, how good each would be, and who is better left waiting.

A score is for people and for ties; whether a slow worker gets something is asked of time: it is passed over while the
others, one after another, would be done with the ticket before it. So it gets its share when there is much to do, and
none of the last ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oraculo.core import worker_scores
from oraculo.core.affinity import LEAST_FACTOR, TicketTies
from oraculo.core.allocations import Candidate, NotChosen
from oraculo.core.vocabulary import SecurityLevel
from oraculo.core.worker_scores import WorkerHealth

HEALTH_SHARE, SUCCESS_SHARE, SPEED_SHARE, ROOM_SHARE = 0.3, 0.3, 0.3, 0.1
NEAR_EQUAL_SCORE = 0.02  # two drawn of those that are so near the best damp herding on what is a moment old
LEAST_DURATION_S = 1e-3  # below it all are as fast
EVER_WEIGHT_MARKS = 3.0  # what it ever did counts as much as so many marks: one or two failures do not pass it over
UNKNOWN_SPEED = 0.5  # of one that has not finished anything here
_HEALTH_WEIGHTS = {WorkerHealth.ATIVO: 1.0, WorkerHealth.DEGRADADO: 0.6, WorkerHealth.DOENTE: 0.3}
_LEVELS = {level: number for number, level in enumerate(SecurityLevel)}


@dataclass(frozen=True, slots=True)
class TicketNeeds:
    """What a worker must have to get a ticket."""

    capabilities: frozenset[str] = frozenset()
    level: SecurityLevel = SecurityLevel.PUBLIC
    resources: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TicketSize:
    """How long a ticket takes, by what was seen of such tickets: `weight` beside others of its queue, and the predicted
    p50 and p90. Without predictions all tickets of a queue weigh the same."""

    weight: float = 1.0
    p50_ms: int | None = None
    p90_ms: int | None = None


ANY_SIZE = TicketSize()


@dataclass(slots=True)
class WorkerFacts:
    """A worker at the moment of a choice. What one that did not register could have said is empty or None. `duration_s`
    is how long an order of weight 1 takes it, None before it has finished one; `asks` are the orders that it asks for
    now; `marks` are those of its trail that are good, and all of them."""

    key: str
    name: str
    answered: int = 0
    failed: int = 0
    duration_s: float | None = None
    in_flight: int = 0
    concurrency: int | None = None
    capabilities: frozenset[str] = frozenset()
    level: SecurityLevel = SecurityLevel.INTERNAL
    resources: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    factor: float = 1.0
    marks: tuple[float, float] = (0.0, 0.0)
    asks: int = 0
    ties: tuple[TicketTies, ...] = ()  # of what it has, where affinity is on
    drained: bool = False
    cancellable: bool = False  # it stops what it is told to stop

    @property
    def health(self) -> WorkerHealth:
        return worker_scores.health(self.answered, self.failed)

    @property
    def success(self) -> float:
        return worker_scores.success_rate(self.answered, self.failed)

    @property
    def places(self) -> int:
        """How many orders it works on at once, as far as that is known."""
        return self.concurrency or max(1, self.in_flight + self.asks)

    @property
    def success_lately(self) -> float:
        """The share of what it did lately that went well, where trails are followed; of all it did, where not."""
        good, all_marks = self.marks
        return (good + EVER_WEIGHT_MARKS * self.success) / (all_marks + EVER_WEIGHT_MARKS)

    @property
    def expected_s(self) -> float | None:
        """How long an order takes it until it went well: what fails is done again."""
        return None if self.duration_s is None else self.duration_s / self.success_lately


def lacks(worker: WorkerFacts, needs: TicketNeeds) -> NotChosen | None:
    """Return why a worker cannot have a ticket at all; None when it can."""
    if worker.drained:
        return NotChosen.DRAINED
    if needs.capabilities and worker.capabilities and not needs.capabilities <= worker.capabilities:
        return NotChosen.CAPABILITIES
    if _LEVELS[worker.level] < _LEVELS[needs.level]:
        return NotChosen.SECURITY
    if worker.concurrency is not None and worker.in_flight >= worker.concurrency:
        return NotChosen.NO_ROOM
    if any(_left(worker, name) < wanted for name, wanted in needs.resources if name in worker.resources):
        return NotChosen.RESOURCES
    return None


def _left(worker: WorkerFacts, resource: str) -> int:
    return worker.resources[resource] - worker.used.get(resource, 0)


def fastest_s(workers: Iterable[WorkerFacts]) -> float | None:
    """The shortest of the durations of these workers; None when none is known."""
    return min((one.duration_s for one in workers if one.duration_s is not None), default=None)


def scored(
    worker: WorkerFacts,
    fastest: float | None,
    reason: NotChosen | None = None,
    weight: float = 1.0,
    affinity: float | None = None,
) -> Candidate:
    """A worker with its score beside the fastest one, for a ticket of some weight and its affinity to it."""
    own = worker.duration_s
    speed = UNKNOWN_SPEED if own is None or fastest is None else 1.0 if own <= fastest else fastest / own
    health, success = _HEALTH_WEIGHTS[worker.health], worker.success
    room = worker_scores.room(worker.places, worker.in_flight)
    parts = HEALTH_SHARE * health + SUCCESS_SHARE * success + SPEED_SHARE * speed + ROOM_SHARE * room
    close = 1.0 if affinity is None else LEAST_FACTOR + affinity
    return Candidate(
        worker.name,
        round(parts * worker.factor * close, 4),
        health,
        round(success, 4),
        round(speed, 4),
        round(room, 4),
        worker.factor,
        None if own is None else round(own * weight * 1000),
        worker.in_flight,
        reason,
        affinity,
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast workers that are faster than another one are: orders of weight 1 in a second together, and the time that
    the fastest of them takes for one."""

    per_s: float
    shortest_s: float

    def done_s(self, ahead: float, weight: float = 1.0) -> float:
        """In how many seconds they would be done with a ticket that has others before it which weigh so much."""
        return (ahead + weight) / self.per_s + self.shortest_s * weight


def pace_of_faster(worker: WorkerFacts, others: Iterable[WorkerFacts]) -> Pace | None:
    """The pace of those that are faster than a worker; None when none is, or its own speed is not known yet."""
    own = worker.expected_s
    if own is None:
        return None
    rate, shortest = 0.0, own
    for one in others:
        expected = one.expected_s
        if expected is not None and expected < own and one.key != worker.key:
            rate += one.places / max(expected, LEAST_DURATION_S)
            shortest = min(shortest, expected)
    return None if rate == 0.0 else Pace(rate, shortest)


def is_outpaced(worker: WorkerFacts, faster: Pace | None, ahead: float, weight: float = 1.0) -> bool:
    """Return whether faster ones would be done with a ticket before this worker."""
    own = worker.expected_s
    return faster is not None and own is not None and own * weight > faster.done_s(ahead, weight)
