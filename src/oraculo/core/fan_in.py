"""Fan-in policies: when the answers that a gate waits for are enough.

A policy is one entry of `POLICIES`: how many successes a gate needs, said when it is planned, and what its count
decides, asked after every answer. To add one: its word in `vocabulary.FanIn`, its entry here, its test in
tests/core/test_fan_in.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oraculo.core.vocabulary import FanIn
from oraculo.errors import PlanError


@dataclass(slots=True)
class GateCount:
    """How many inputs of a gate have closed, how many of them concluded, and how many count neither way."""

    ok: int = 0
    closed: int = 0
    passed: bool | None = None  # None while the gate is open
    skipped: int = 0

    @property
    def failed(self) -> int:
        return self.closed - self.ok - self.skipped


Decide = Callable[
    [int, int, GateCount], bool | None
]  # (needed, inputs, count) → passes, cannot pass any more, or not yet


@dataclass(frozen=True, slots=True)
class Policy:
    """`needed` gives the successes that a gate with so many inputs needs. `takes_minimum`: the request says how many.
    `in_requests`: a request may name it."""

    needed: Callable[[int], int]
    decide: Decide
    takes_minimum: bool = False
    in_requests: bool = True


def _when_all_closed(needed: int, inputs: int, count: GateCount) -> bool | None:
    return None if count.closed < inputs else count.ok >= needed


def _as_soon_as_decided(needed: int, inputs: int, count: GateCount) -> bool | None:
    if count.ok >= needed:
        return True
    unreachable = count.ok + inputs - count.closed < needed
    return False if unreachable and (count.failed or count.closed == inputs) else None


def _unless_one_failed(_needed: int, inputs: int, count: GateCount) -> bool | None:
    if count.failed:
        return False
    return None if count.closed < inputs else count.ok > 0


def _however_they_ended(_needed: int, inputs: int, count: GateCount) -> bool | None:
    return None if count.closed < inputs else count.skipped < inputs


POLICIES: dict[FanIn, Policy] = {
    FanIn.TODOS: Policy(lambda _inputs: 1, _when_all_closed),
    FanIn.QUORUM: Policy(lambda inputs: inputs, _as_soon_as_decided, takes_minimum=True),
    FanIn.PRIMEIRO: Policy(lambda _inputs: 1, _as_soon_as_decided),
    FanIn.TODAS_OK: Policy(lambda inputs: inputs, _unless_one_failed, in_requests=False),
    FanIn.FECHADAS: Policy(lambda _inputs: 0, _however_they_ended, in_requests=False),
}
REQUEST_MODES = tuple(mode.value for mode, policy in POLICIES.items() if policy.in_requests)


def needed(mode: FanIn, minimum: int | None, inputs: int) -> int:
    """The successes that a gate with so many inputs needs; PlanError when `minimum` does not fit."""
    policy = POLICIES[mode]
    if not policy.takes_minimum:
        if minimum is not None:
            raise PlanError(f"fan_in.minimo goes with modo quorum, not with {mode.value}", "fan_in.minimo")
        return policy.needed(inputs)
    if minimum is None:
        raise PlanError(f"fan_in.modo {mode.value} needs fan_in.minimo", "fan_in.minimo")
    if not 1 <= minimum <= inputs:
        raise PlanError(f"fan_in.minimo is {minimum}; allowed: 1 to {inputs}, the number of tasks", "fan_in.minimo")
    return minimum


def decide(mode: FanIn, needed: int, inputs: int, count: GateCount) -> bool | None:
    """True: the gate passes; False: it cannot pass any more; None: not decided yet."""
    return POLICIES[mode].decide(needed, inputs, count)
