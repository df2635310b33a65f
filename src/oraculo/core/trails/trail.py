"""One trail: three marks that fade by a half-life, and the score that they make.

A mark is put down by what a worker, or a class of them (a queue), answered. Fading is counted when it is read: a trail
without new marks goes back to neutral by itself, so a bad worker gets another chance and a good one has to stay so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from oraculo.core.tenants import tenant_of

LOWEST_SCORE, HIGHEST_SCORE = 0.1, 0.95  # one is never sure of a worker
WARNING_SHARE = 0.5  # of a success
LEAST_FACTOR, FACTOR_RANGE = 0.75, 0.5
EXPLORING_FACTOR = 2.0  # outweighs all that scores say
EXPLORED_SHARE = 0.05  # of choices, for workers that would not be chosen


class Mark(StrEnum):
    """Done at the first attempt; done after a retry; failed, and the worker is to blame."""

    SUCCESS = "sucesso"
    WARNING = "aviso"
    FAILURE = "falha"


@dataclass(frozen=True, slots=True)
class TrailKey:
    """`queue` is the class of workers, by its name inside; `worker` one of them, empty: all of them."""

    queue: str
    worker: str = ""

    @property
    def tenant(self) -> str:
        return tenant_of(self.queue)

    @property
    def text(self) -> str:
        return f"{self.queue}\n{self.worker}"

    @classmethod
    def of_text(cls, text: str) -> TrailKey:
        queue, _, worker = text.partition("\n")
        return cls(queue, worker)


@dataclass(frozen=True, slots=True)
class Trail:
    """The marks as they were at `at`. `weight` and `duration_ms` are those of the mean duration."""

    at: datetime
    success: float = 0.0
    warning: float = 0.0
    failure: float = 0.0
    weight: float = 0.0
    duration_ms: float = 0.0

    def faded(self, now: datetime, half_life: timedelta) -> Trail:
        """The same as it is now. An instant before `at` fades nothing."""
        if now <= self.at:
            return self
        left = 0.5 ** ((now - self.at) / half_life)
        return replace(
            self,
            at=now,
            success=self.success * left,
            warning=self.warning * left,
            failure=self.failure * left,
            weight=self.weight * left,
        )

    def marked(self, mark: Mark, now: datetime, half_life: timedelta, duration_ms: float | None = None) -> Trail:
        """The same with one mark more."""
        faded = self.faded(now, half_life)
        weight, mean = faded.weight, faded.duration_ms
        if duration_ms is not None:
            weight += 1.0
            mean += (duration_ms - mean) / weight
        return replace(
            faded,
            success=faded.success + (mark is Mark.SUCCESS),
            warning=faded.warning + (mark is Mark.WARNING),
            failure=faded.failure + (mark is Mark.FAILURE),
            weight=weight,
            duration_ms=mean,
        )

    @property
    def score(self) -> float:
        """From 0.1 to 0.95; 0.5 when there are no marks. Smoothed, so that one failure does not banish."""
        return min(HIGHEST_SCORE, max(LOWEST_SCORE, (self.good + 1) / (self.strength + 2)))

    @property
    def factor(self) -> float:
        """What the score of a worker is multiplied by: 1 when there are no marks."""
        return LEAST_FACTOR + FACTOR_RANGE * self.score

    @property
    def good(self) -> float:
        """The marks of what went well; a retry is half of one."""
        return self.success + WARNING_SHARE * self.warning

    @property
    def strength(self) -> float:
        """All marks together."""
        return self.success + self.warning + self.failure

    def as_json(self) -> list[Any]:
        marks = [round(one, 6) for one in (self.success, self.warning, self.failure, self.weight, self.duration_ms)]
        return [self.at.isoformat(), *marks]

    @classmethod
    def of_json(cls, value: list[Any]) -> Trail:
        at, *marks = value
        return cls(datetime.fromisoformat(at), *marks)
