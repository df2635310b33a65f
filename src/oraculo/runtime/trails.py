"""The projection that follows workers by what they leave in the journal, and what it knows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import orjson

from oraculo.core.tenants import local_name
from oraculo.core.trails.marks import deposits
from oraculo.core.trails.trail import EXPLORED_SHARE, EXPLORING_FACTOR, Trail, TrailKey
from oraculo.ports.clock import Clock
from oraculo.ports.projected import ProjectedDocuments
from oraculo.ports.projection import Entry
from oraculo.runtime.document_sink import DocumentSink

PROJECTION = "trilhas"
FADED_BELOW = 0.01  # marks together; a trail with less is as good as none, and is removed
SWEEP_AFTER_CHANGES = 500


class Trails(DocumentSink):
    """What success and failure left behind, of queues and of workers whose choice is in the journal."""

    name = PROJECTION

    def __init__(self, store: ProjectedDocuments, clock: Clock, half_life: timedelta) -> None:
        super().__init__(store)
        self._clock = clock
        self.half_life = half_life
        self._trails: dict[TrailKey, Trail] = {}
        self._changed: set[TrailKey] = set()
        self._changes = 0  # since faded ones were looked for
        self._draw = random.random

    # -- asking --------------------------------------------------------------------------------------------------------

    def trail(self, key: TrailKey) -> Trail | None:
        """The trail as it is now; None when nothing was left, or all of it has faded."""
        found = self._trails.get(key)
        return None if found is None else found.faded(self._clock.now(), self.half_life)

    def of_tenant(self, tenant: str) -> Iterator[tuple[TrailKey, Trail]]:
        now = self._clock.now()
        for key, found in self._trails.items():
            if key.tenant == tenant:
                yield key, found.faded(now, self.half_life)

    def all(self) -> Iterator[tuple[TrailKey, Trail]]:
        now = self._clock.now()
        return ((key, found.faded(now, self.half_life)) for key, found in list(self._trails.items()))

    def rank_factor(self, worker: str, queues: Iterable[str]) -> float:
        """What the rank of a worker is multiplied by: the mean over its queues, of its own trail where it has one and
        of the class otherwise."""
        found = [self._factor(worker, queue) for queue in queues]
        return sum(found) / len(found) if found else 1.0

    def factor(self, worker_key: str, queue: str) -> float:
        """What the score of a worker is multiplied by when a ticket of a queue is given out. Now and then it outweighs
        everything: what is never chosen is never known to be good again."""
        if self._draw() < EXPLORED_SHARE:
            return EXPLORING_FACTOR
        return self._factor(local_name(worker_key), queue)

    def marks(self, worker_key: str, queue: str) -> tuple[float, float]:
        """The marks of a worker's own trail, as far as they have not faded: the good ones, and all of them."""
        trail = self.trail(TrailKey(queue, local_name(worker_key)))
        return (0.0, 0.0) if trail is None else (trail.good, trail.strength)

    def _factor(self, worker: str, queue: str) -> float:
        trail = self.trail(TrailKey(queue, worker)) or self.trail(TrailKey(queue))
        return 1.0 if trail is None else trail.factor

    # -- following -----------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        self._trails = {}
        self._changed.clear()

    def load(self, documents: Mapping[str, bytes]) -> None:
        self._trails |= {TrailKey.of_text(key): Trail.of_json(orjson.loads(body)) for key, body in documents.items()}

    def learn(self, entry: Entry) -> None:
        step = entry.step
        for one in deposits(entry.state, step.events, step.at):
            trail = self._trails.get(one.key) or Trail(step.at)
            self._trails[one.key] = trail.marked(one.mark, step.at, self.half_life, one.duration_ms)
            self._changed.add(one.key)

    def changes(self) -> dict[str, bytes | None]:
        self._sweep()
        return {key.text: self._document(key) for key in self._changed}

    def written(self) -> None:
        self._changed.clear()

    def _document(self, key: TrailKey) -> bytes | None:
        known = self._trails.get(key)
        return None if known is None else orjson.dumps(known.as_json())

    def _sweep(self) -> None:
        """Remove trails that have faded, from time to time: workers come and go under new names."""
        self._changes += len(self._changed)
        if self._changes < SWEEP_AFTER_CHANGES:
            return
        self._changes, now = 0, self._clock.now()
        for key, trail in list(self._trails.items()):
            if trail.faded(now, self.half_life).strength < FADED_BELOW:
                del self._trails[key]
                self._changed.add(key)
