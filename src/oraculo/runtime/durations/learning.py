"""The projection that learns how long tasks take, and what it has learnt."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import orjson
import structlog

from oraculo.core.durations.ending import RunForecast, Unforeseen, foresee
from oraculo.core.durations.history import Estimate, History, Known, TaskKey
from oraculo.core.durations.samples import samples
from oraculo.core.state import Orchestration
from oraculo.ports.projected import ProjectedDocuments
from oraculo.ports.projection import Entry
from oraculo.runtime.document_sink import DocumentSink

log = structlog.get_logger("oraculo.durations")

PROJECTION = "previsoes"
ERROR_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)  # |actual - p50| / actual


class Durations(DocumentSink):
    """`judged` counts predictions by whether what came was within the p90; `errors` is a histogram of how far off the
    p50 was."""

    name = PROJECTION

    def __init__(self, store: ProjectedDocuments) -> None:
        super().__init__(store)
        self.history = History()
        self.judged: Counter[str] = Counter()
        self.errors = [0] * (len(ERROR_BUCKETS) + 1)
        self.error_sum = 0.0

    # -- asking --------------------------------------------------------------------------------------------------------

    def estimate(self, key: TaskKey, planned_ms: float | None = None) -> Estimate | None:
        return self.history.estimate(key, planned_ms)

    def usual_ms(self, key: TaskKey) -> float | None:
        known = self.history.keys.get(key.levels()[1])
        return None if known is None or known.predicted is None else known.predicted.p50_ms

    def foresee(self, state: Orchestration, now: datetime) -> RunForecast | Unforeseen | None:
        return foresee(state, now, self.history.estimate)

    # -- learning ------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        self.history = History()

    def load(self, documents: Mapping[str, bytes]) -> None:
        self.history.keys |= {key: Known.of_json(orjson.loads(body)) for key, body in documents.items()}

    def learn(self, entry: Entry) -> None:
        step = entry.step
        for one in samples(entry.state, step.events, step.at):
            self._learn(one.key, one.ms, step.at, censored=one.censored)

    def changes(self) -> dict[str, bytes | None]:
        return {key: self._document(key) for key in self.history.changed}

    def written(self) -> None:
        self.history.changed.clear()

    def _document(self, key: str) -> bytes | None:
        known = self.history.keys.get(key)
        return None if known is None else orjson.dumps(known.as_json())

    def _learn(self, key: TaskKey, ms: float, at: datetime, *, censored: bool) -> None:
        before = self.history.learn(key, ms, at, censored=censored)
        if before is None or censored:
            return
        self.judged["within" if ms <= before.p90_ms else "beyond"] += 1
        error = abs(ms - before.p50_ms) / max(ms, 1.0)
        self.errors[bisect_left(ERROR_BUCKETS, error)] += 1
        self.error_sum += error
        self._tell_drift(key, before)

    def _tell_drift(self, key: TaskKey, before: Estimate) -> None:
        now = self.history.keys[key.levels()[0]].calibration
        if now.drifted != before.drifted and now.judged % 10 == 0:
            said = "durations have drifted" if now.drifted else "durations are as predicted again"
            log.warning(
                said,
                tenant=key.tenant,
                destination=f"{key.kind.value} {key.name}",
                coverage=round(now.covered, 3),
                p50_ms=round(before.p50_ms),
            )
