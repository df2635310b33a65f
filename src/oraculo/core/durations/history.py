"""What was seen of every destination, and the estimate that it gives for the next task.

Narrow keys (a destination with parameters of one size) are learnt from few samples, wide ones (all of a kind) from
many; an estimate takes each as far as its samples go, n / (n + 20), and the rest from the wider one. A plan's own
estimate counts as five samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import exp
from typing import Any

from oraculo.core.durations.calibration import MISS_SHARE, Calibration
from oraculo.core.durations.errors import PredictionErrors
from oraculo.core.durations.sketch import HALF_LIFE_SAMPLES, DurationQuantiles, Sketch, bin_of, mixture
from oraculo.core.vocabulary import Kind

SHRINKAGE_SAMPLES = 20.0
ESTIMATE_SAMPLES = 5.0  # that a plan's own estimate is worth
BINS_PER_TWO = 17  # bins between a duration and twice that duration
DRIFT_HALF_LIFE_SAMPLES = 50.0  # while what comes is not what was learnt
MAX_KEYS = 20_000
LEARNT_MAX_PER_SECOND = 50  # of a narrow key: of a second in which more end, the others would say the same again
REFRESH_MAX_SAMPLES = 50  # samples after which a prediction is made anew, at most
_LEAST_WEIGHT = 0.03  # of a wider key that is worth looking at
_SIZES = (64, 1024, 16 * 1024, 256 * 1024)  # bytes of parameters that part one class from the next


def size_class(parameters: int) -> int:
    """The class of parameters by the bytes of their JSON text."""
    return sum(parameters > size for size in _SIZES)


@dataclass(frozen=True, slots=True)
class TaskKey:
    """What a task is, as far as its duration goes."""

    tenant: str
    kind: Kind
    name: str
    size: int = 0

    def levels(self) -> tuple[str, str, str]:
        """From narrow to wide."""
        wide = f"{self.tenant}/{self.kind.value}"
        return f"{wide}/{self.name}/{self.size}", f"{wide}/{self.name}", wide


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a task takes: half of them end within `p50_ms`, nine of ten within `p90_ms`. `samples` of its narrowest
    key count today. `confidence`: 0 to 1."""

    p50_ms: float
    p90_ms: float
    samples: float
    confidence: float
    drifted: bool
    distribution: DurationQuantiles


@dataclass(slots=True)
class Known:
    """What is known of one key. The prediction is that of a while ago: it is made anew when enough has come since."""

    sketch: Sketch = field(default_factory=Sketch)
    calibration: Calibration = field(default_factory=Calibration)
    seen: int = 0  # samples ever
    predicted: Estimate | None = None
    raw_p90: float = 0.0
    fresh: int = 0  # samples that may still come before the prediction is made anew
    second: int = 0  # the one that the newest sample came in
    in_second: int = 0  # samples that came in it
    errors: PredictionErrors = field(default_factory=PredictionErrors)

    def as_json(self, *, baseline: bool = True) -> dict[str, Any]:
        """The document of a key, with what drift is measured against where that is the `baseline` of a next start."""
        return {
            **self.sketch.as_json(),
            "calibration": (self.calibration if baseline else self.calibration.without_baseline()).as_json(),
            "seen": self.seen,
            "lately": [self.second, self.in_second],
            **({"errors": self.errors.as_json()} if self.errors.judged else {}),
        }

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Known:
        made = cls(Sketch.of_json(found), Calibration.of_json(found["calibration"]), int(found["seen"]))
        made.second, made.in_second = found.get("lately", (0, 0))
        made.errors = PredictionErrors.of_json(found.get("errors", ()))
        return made


class History:
    """`changed` are keys that were added to since it was last emptied; a key that was forgotten is in it, too.
    `drifts`: durations that have changed are looked for, and learnt faster."""

    def __init__(self, *, drifts: bool = True) -> None:
        self.drifts = drifts
        self.keys: dict[str, Known] = {}
        self.changed: set[str] = set()

    # -- learning ------------------------------------------------------------------------------------------------------

    def learn(self, key: TaskKey, ms: float, at: datetime, *, censored: bool = False) -> Estimate | None:
        """Add how long a task took, and return what had been predicted. `censored`: it took at least that long, and was
        given up; it counts as one that takes as long as the slowest tenth. Nothing is added, and None is returned, for
        what ends in a second of which enough is known."""
        levels = key.levels()
        if not censored and self._knows_enough(levels[0], at):
            return None
        before = self._refreshed(levels)
        if censored and before is not None:
            ms = max(ms, before.p90_ms)
        if before is not None and not (censored and ms <= before.p90_ms):
            self._judge(levels, ms)
        narrow = self.keys.get(levels[0])
        drifted = narrow is not None and self.has_drifted(narrow)
        for level in levels:
            known = self._known(level)
            known.sketch.add(ms, at, DRIFT_HALF_LIFE_SAMPLES if drifted else HALF_LIFE_SAMPLES)
            known.seen += 1
        self.changed.update(levels)
        return before

    def _knows_enough(self, level: str, at: datetime) -> bool:
        known, second = self._known(level), int(at.timestamp())
        if known.second != second:
            known.second, known.in_second = second, 0
        known.in_second += 1
        self.changed.add(level)
        return known.in_second > LEARNT_MAX_PER_SECOND

    def _judge(self, levels: tuple[str, str, str], ms: float) -> None:
        for level in levels[:2]:
            known = self.keys.get(level)
            if known is not None and known.predicted is not None:
                known.calibration.judge(ms, known.predicted.p50_ms, known.raw_p90, known.predicted.p90_ms)

    def _refreshed(self, levels: tuple[str, str, str]) -> Estimate | None:
        """The prediction of the narrowest key, made anew when it is too old; that of its destination, too."""
        wide = self._known(levels[1])
        self._refresh(wide, levels[1:])
        narrow = self._known(levels[0])
        self._refresh(narrow, levels)
        return narrow.predicted

    def _refresh(self, known: Known, levels: tuple[str, ...]) -> None:
        if known.fresh > 0 and known.predicted is not None:
            known.fresh -= 1
            return
        known.fresh = min(REFRESH_MAX_SAMPLES, known.seen // 8)
        made = self._estimate(levels)
        known.predicted = made
        if made is not None:
            found = made.distribution
            known.raw_p90 = found.quantile(0.9) / exp(found.stretch)

    def _known(self, level: str) -> Known:
        """What is known of a key, which is the last to be forgotten from now on."""
        known = self.keys.pop(level, None) or Known()
        self.keys[level] = known
        if len(self.keys) > MAX_KEYS:
            oldest = next(iter(self.keys))
            del self.keys[oldest]
            self.changed.add(oldest)
        return known

    # -- asking --------------------------------------------------------------------------------------------------------

    def estimate(self, key: TaskKey, planned_ms: float | None = None) -> Estimate | None:
        """How long a task takes, by what was seen, and by its plan's own estimate; None when neither says anything."""
        levels = key.levels()
        if planned_ms is None:
            known = self.keys.get(levels[0])
            if known is not None and known.predicted is not None and known.fresh > 0:
                return known.predicted
        return self._estimate(levels, planned_ms)

    def of_level(self, level: str) -> Estimate | None:
        """How long tasks of one key take, by that key alone."""
        return self._estimate((level,))

    def _estimate(self, levels: tuple[str, ...], planned_ms: float | None = None) -> Estimate | None:
        parts: list[tuple[float, Mapping[int, float]]] = []
        left = 1.0
        for level in levels:
            known = self.keys.get(level)
            if known is None or left < _LEAST_WEIGHT:
                continue
            count, others = known.sketch.count, SHRINKAGE_SAMPLES
            if level == levels[-1]:  # nothing wider; of other destinations it says no more than the plan does
                count, others = (min(count, ESTIMATE_SAMPLES), ESTIMATE_SAMPLES) if planned_ms else (count, 0.0)
            share = left * count / (count + others) if count else 0.0
            parts.append((share, known.sketch.bins))
            left -= share
        if planned_ms:
            parts.append((left, _around(planned_ms)))
        found = mixture(parts, self._stretch(levels))
        if found is None:
            return None
        narrow = self.keys.get(levels[0])
        samples = 0.0 if narrow is None else narrow.sketch.count
        calibration = Calibration() if narrow is None else narrow.calibration
        sure = samples / (samples + SHRINKAGE_SAMPLES) * min(1.0, calibration.covered / (1 - MISS_SHARE))
        drifted = narrow is not None and self.has_drifted(narrow)
        median = found.quantile(0.5)
        return Estimate(median, max(median, found.quantile(0.9)), samples, sure, drifted, found)

    def has_drifted(self, known: Known) -> bool:
        """Return whether durations of a key have changed lately, where that is looked for."""
        return self.drifts and known.calibration.drifted

    def _stretch(self, levels: tuple[str, ...]) -> float:
        """The correction of the narrowest key that has one."""
        for level in levels[:2]:
            known = self.keys.get(level)
            if known is not None and known.calibration.ready:
                return known.calibration.correction
        return 0.0

    def of_tenant(self, tenant: str) -> Iterator[tuple[str, Known]]:
        """The destinations of a tenant, each with all its sizes as one, and what is known of them."""
        start = f"{tenant}/"
        for level, known in self.keys.items():
            if level.startswith(start) and level.count("/") == 2:
                yield level[len(start) :], known


def _around(planned_ms: float) -> Mapping[int, float]:
    """A plan's estimate as samples: around it, as far as a factor of two."""
    middle = bin_of(planned_ms)
    return {middle - BINS_PER_TWO: 1.0, middle: 3.0, middle + BINS_PER_TWO: 1.0}
