"""What came of evaluating the expressions of one task, or of the output of a plan. The core records it; it never
evaluates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OUTPUT = -1  # the position of the output


class Outcome(StrEnum):
    """`go`: it may start; `skip`: its condition is false; `fail`: an expression has no value. Of a loop: `stop`, its
    condition is true; `spent`, it is false and no round is left."""

    GO = "go"
    SKIP = "skip"
    FAIL = "fail"
    STOP = "stop"
    SPENT = "spent"


class Obstacle(StrEnum):
    """Why a task failed whose expressions were evaluated: one has no value, a map has more items than a run may have
    tickets, its rows are too large, or they are fewer than its fan-in needs."""

    EXPRESSION = "expression"
    ITEMS = "items"
    DATA = "data"
    FAN_IN = "fan_in"


@dataclass(slots=True)
class Resolution:
    """`value` is JSON text: the parameters of a task that may start, or the output. Of a task that may not: `word` is
    where the expression stands, `expression` its text, `detail` what is wrong with it, or what it saw."""

    ticket: int
    outcome: Outcome
    value: bytes = b"null"
    word: str = ""
    expression: str = ""
    detail: str = ""
    obstacle: Obstacle = Obstacle.EXPRESSION


@dataclass(slots=True)
class IdleItems:
    """Items of a map that do not start, all for the same reason, by their numbers; `why` names the map."""

    items: list[int]
    why: Resolution
