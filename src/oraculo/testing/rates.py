"""Which faults there are in a world, and how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

USUAL_RATES = {"kill": 0.01, "drop": 0.1, "duplicate": 0.15, "late": 0.05}
FAULTS = tuple(USUAL_RATES)
SEED_FACTORS = (0.5, 1.0, 2.0)  # one of them is drawn for each fault of a seed


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often each fault happens, from 0 (never) to 1.

    `kill`: at each call to database or broker, or at any instant, the orchestrator or a worker dies and starts again.
    `drop`: an order or an answer is lost. `duplicate`: it comes twice or three times. `late`: it comes after the
    attempt that it belongs to has run out of time. With `spare_last` neither `drop` nor `late` meets the last attempt
    of a task, so that its retries are enough to get through."""

    kill: float = 0.0
    drop: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    spare_last: bool = True

    def __post_init__(self) -> None:
        for name in FAULTS:
            rate = self.__getattribute__(name)
            if not 0 <= rate <= 1:
                raise ValueError(f"{name} is {rate}; a rate is from 0 to 1")

    @property
    def any(self) -> bool:
        """True if something can go wrong."""
        return bool(self.kill or self.drop or self.duplicate or self.late)

    def drawn(self, rng: Random) -> FaultRates:
        """The rates of one seed: half, as they are, or twice as much, for each fault on its own."""
        rates = {name: min(1.0, self.__getattribute__(name) * rng.choice(SEED_FACTORS)) for name in FAULTS}
        return replace(self, **rates)

    def __str__(self) -> str:
        shown = [f"{one.name}={self.__getattribute__(one.name)}" for one in fields(self) if one.name in FAULTS]
        return " ".join(shown)


def rates_of(faults: FaultRates | str | Iterable[str]) -> FaultRates:
    """The rates that are meant: themselves, or the usual ones of some faults by name."""
    if isinstance(faults, FaultRates):
        return faults
    names = faults.replace(",", " ").split() if isinstance(faults, str) else list(faults)
    for name in names:
        if name not in USUAL_RATES:
            raise ValueError(f"{name!r} is no fault; there are {', '.join(FAULTS)}")
    usual: dict[str, Any] = {name: USUAL_RATES[name] for name in names}
    return FaultRates(**usual)
