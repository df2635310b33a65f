"""The projection that learns how long tasks take, and what it has learnt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import reduce

import orjson
import structlog

from oraculo.core.durations.ending import RunForecast, Unforeseen, foresee
from oraculo.core.durations.errors import PredictionErrors
from oraculo.core.durations.history import Estimate, History, Known, TaskKey
from oraculo.core.durations.samples import samples
from oraculo.core.state import Orchestration
from oraculo.ports.projected import ProjectedDocuments
from oraculo.ports.projection import Entry
from oraculo.runtime.document_sink import DocumentSink

log = structlog.get_logger("oraculo.durations")

PROJECTION = "previsoes"
NARROW_SLASHES = 3  # in the key of what is narrowest: tenant, kind, name, size


class Durations(DocumentSink):
    """`drift`: durations that have changed are told and learnt faster; `baseline`: what that is measured against is
    stored; `past_errors`: errors of earlier processes are told with those of this one."""

    name = PROJECTION

    def __init__(
        self, store: ProjectedDocuments, drift: bool = True, baseline: bool = True, past_errors: bool = False
    ) -> None:
        super().__init__(store)
        self._drift, self._baseline, self._past_errors = drift, baseline, past_errors
        self.history = History(drifts=drift)
        self._own_errors = PredictionErrors()

    @property
    def errors(self) -> PredictionErrors:
        """How far predictions were off: those of this process, or all that are stored."""
        if not self._past_errors:
            return self._own_errors
        narrow = (known.errors for level, known in self.history.keys.items() if level.count("/") == NARROW_SLASHES)
        return reduce(PredictionErrors.plus, narrow, PredictionErrors())

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
        self.history = History(drifts=self._drift)

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
        return None if known is None else orjson.dumps(known.as_json(baseline=self._baseline))

    def _learn(self, key: TaskKey, ms: float, at: datetime, *, censored: bool) -> None:
        before = self.history.learn(key, ms, at, censored=censored)
        if before is None or censored:
            return
        for errors in (self._own_errors, self.history.keys[key.levels()[0]].errors):
            errors.add(ms, before.p50_ms, before.p90_ms)
        self._tell_drift(key, before)

    def _tell_drift(self, key: TaskKey, before: Estimate) -> None:
        known = self.history.keys[key.levels()[0]]
        now, drifted = known.calibration, self.history.has_drifted(known)
        if drifted != before.drifted and now.judged % 10 == 0:
            said = "durations have drifted" if drifted else "durations are as predicted again"
            log.warning(
                said,
                tenant=key.tenant,
                destination=f"{key.kind.value} {key.name}",
                coverage=round(now.covered, 3),
                p50_ms=round(before.p50_ms),
            )
