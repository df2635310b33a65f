"""What both parsers say of a text, one part after another, and what keeps them from going on."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum

from oraculo.plans.faults import Fault, FaultCode, Faults, Path
from oraculo.plans.model import Json

SYNTAX_PATH: Path = ()


class Part(Enum):
    OBJECT = "{"
    LIST = "["
    END = "end"
    SCALAR = "scalar"


class Quoting(Enum):
    """How a text is written, which says where its n-th character stands."""

    PLAIN = "plain"
    ESCAPES = "escapes"
    SINGLE = "single"
    LITERAL = "literal"
    FOLDED = "folded"


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """One part of a text. A key is a scalar that stands where a key has to. `fault`: why the scalar is refused as a
    value; keys are texts, whatever they look like."""

    part: Part
    start: int
    end: int
    value: Json = None
    text: str = ""
    quoting: Quoting = Quoting.PLAIN
    fault: tuple[FaultCode, str] | None = None


@dataclass(frozen=True, slots=True)
class PlacedFault:
    """A fault and where it is: line and column count from 1."""

    fault: Fault
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.fault if self.fault.path else self.fault.message}"


class SourceText:
    """A text, and the faults that were found in it by place instead of by path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.faults = Faults()
        self._starts: list[int] = []  # of the faults that are kept
        self._lines: list[int] | None = None

    def add(self, start: int, code: FaultCode, message: str, path: Path = SYNTAX_PATH) -> None:
        if not self.faults.full:
            self._starts.append(start)
        self.faults.add(path, code, message)

    @property
    def placed(self) -> list[PlacedFault]:
        return [self.at(fault, start) for fault, start in zip(self.faults.kept, self._starts, strict=True)]

    def at(self, fault: Fault, index: int) -> PlacedFault:
        """The fault at the line and column of a character."""
        if self._lines is None:
            self._lines = [0, *self._line_starts()]
        line = bisect_right(self._lines, index)
        return PlacedFault(fault, line, index - self._lines[line - 1] + 1)

    def _line_starts(self) -> list[int]:
        text = self.text
        if "\r" not in text:
            return [index + 1 for index, letter in enumerate(text) if letter == "\n"]
        return [
            index + 1
            for index, letter in enumerate(text)
            if letter == "\n" or (letter == "\r" and text[index + 1 : index + 2] != "\n")
        ]
