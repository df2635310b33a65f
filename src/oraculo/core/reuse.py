"""What a retry takes over from the run that it tries again (docs/adr/0043): the values. `restoring` makes it true,
`reusing` decides when, `retrying` what.

It is copied into the journal of the retry when that begins, and counts task by task, when each would start: so what
waits for a task waits for it in a retry, too, and a fan-in decides as in any run. A map gets the rows that it had;
nothing is evaluated for them. Tickets that are not taken over start as in any run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from oraculo.core.resolution import IdleItems


class RetryFrom(StrEnum):
    """What a retry does again: what did not conclude, everything, or one task and all behind it."""

    FAILURES = "falhas"
    START = "inicio"
    TASK = "tarefa"


@dataclass(frozen=True, slots=True)
class Origin:
    """The run that a retry tries again. `reuses`: it takes something over, which comes before it begins."""

    run: int
    correlation_id: str
    mode: RetryFrom
    task: str | None = None
    reuses: bool = False


@dataclass(slots=True)
class ReusedResult:
    """What came of one ticket. Of an item of a map, `ticket` is the position of the map and `item` its number."""

    ticket: int
    dados: bytes  # JSON text
    erros: list[dict[str, object]]
    item: int | None = None


@dataclass(slots=True)
class ReusedRows:
    """Rows of a map, or some of them; `template` and `idle` come with the first."""

    owner: int
    total: int
    rows: list[tuple[bytes, ...]]
    template: list[str] | None = None
    idle: list[IdleItems] = field(default_factory=list)


@dataclass(slots=True)
class KnownMap:
    """The items that a map will have, and what came of some of them, by their numbers."""

    total: int
    template: list[str]
    idle: list[IdleItems]
    rows: list[tuple[bytes, ...]] = field(default_factory=list)
    items: dict[int, ReusedResult] = field(default_factory=dict)


@dataclass(slots=True)
class Reusable:
    """What has not been taken over yet: results by position, maps by theirs. `complete`: all of it is here."""

    complete: bool = False
    results: dict[int, ReusedResult] = field(default_factory=dict)
    maps: dict[int, KnownMap] = field(default_factory=dict)
