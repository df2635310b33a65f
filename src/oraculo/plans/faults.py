"""What is wrong with a plan: every fault at once, each with its path in the words that were sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from oraculo.errors import WireError

FAULTS_KEPT = 100  # the rest is counted
HINT_MAX_CHOICES = 500  # a likely word is looked for among so many at most
CHOICES_SHOWN = 12
VALUE_SHOWN_CHARS = 60

Path = tuple[str | int, ...]


class FaultCode(StrEnum):
    """Stable words for programs."""

    SYNTAX = "syntax"
    UNKNOWN_FIELD = "unknown_field"
    MISSING = "missing"
    TWICE = "twice"
    WRONG_KIND = "wrong_kind"
    NOT_ALLOWED = "not_allowed"
    BAD_NAME = "bad_name"
    UNKNOWN_NAME = "unknown_name"
    CYCLE = "cycle"
    EXPRESSION = "expression"
    TOO_MUCH = "too_much"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Fault:
    """`column`: where in the text at `path`, counted from 0, None when the whole value is meant."""

    path: Path
    code: FaultCode
    message: str
    column: int | None = None

    @property
    def where(self) -> str:
        return ".".join(map(str, self.path)) or "(corpo)"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class Faults:
    """Collects faults: the first of them, and how many there are. `english` says which words they offer where the place
    itself tells nothing."""

    def __init__(self, english: bool = False) -> None:
        self.kept: list[Fault] = []
        self.count = 0
        self.english = english

    def add(self, path: Path, code: FaultCode, message: str, column: int | None = None) -> None:
        self.count += 1
        if len(self.kept) < FAULTS_KEPT:
            self.kept.append(Fault(path, code, message, column))

    def take(self, others: Faults, under: Path) -> None:
        """Add what was found in a part of the document that is at `under`."""
        self.count += others.count - len(others.kept)
        for fault in others.kept:
            self.add((*under, *fault.path), fault.code, fault.message, fault.column)

    @property
    def full(self) -> bool:
        """Whether what is added now is only counted: no message needs to be made."""
        return len(self.kept) >= FAULTS_KEPT


def error_of(faults: Sequence[Fault]) -> WireError:
    """The refusal that lists all of them."""
    errors = [{"campo": fault.where, "mensagem": fault.message, "codigo": fault.code.value} for fault in faults]
    more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    return WireError("invalid_request", "; ".join(map(str, faults[:5])) + more, errors)


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that the word was probably meant to be."""
    known = sorted(choices)
    near = get_close_matches(word[:100], known, 1) if len(known) <= HINT_MAX_CHOICES else []
    return str(near[0]) if near else None


def did_you_mean(word: str | None) -> str:
    return f"did you mean {word!r}? " if word else ""


def hint(word: str, choices: Iterable[str]) -> str:
    """`did you mean 'x'? ` or nothing."""
    return did_you_mean(nearest(word, choices))


def listed(choices: Iterable[str]) -> str:
    """The choices in a sentence, not more than a reader can use."""
    known = list(choices)
    more = f" and {len(known) - CHOICES_SHOWN} more" if len(known) > CHOICES_SHOWN else ""
    return ", ".join(known[:CHOICES_SHOWN]) + more if known else "none"


def shown(value: object) -> str:
    """What was sent, short enough for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value) if len(value) <= VALUE_SHOWN_CHARS else repr(value[:VALUE_SHOWN_CHARS]) + "…"
        case int() | float():
            return repr(value)[:VALUE_SHOWN_CHARS] if not isinstance(value, int) or abs(value) < 10**30 else "a number"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
