"""What happened in a world: a line for everything, a hash over all lines, counts, and what was violated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b


@dataclass(slots=True)
class Violation:
    rule: str
    detail: str
    at: float

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail} (at {self.at:.6f} s)"


@dataclass(slots=True)
class Report:
    """One world, told in numbers. The same seed gives the same `trace` hash, on every machine."""

    kind: str
    seed: int
    trace: str
    virtual_s: float
    tally: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


class Trace:
    def __init__(self, keep: bool = False) -> None:
        self.now = 0.0
        self.tally: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.lines: list[str] = []
        self._keep = keep
        self._hash = blake2b(digest_size=16)

    def log(self, text: str) -> None:
        line = f"{self.now:12.6f}  {text}"
        self._hash.update(line.encode())
        if self._keep:
            self.lines.append(line)

    def mix(self, body: bytes) -> None:
        """Into the hash, not into the lines."""
        self._hash.update(body)

    def violate(self, rule: str, detail: str) -> None:
        self.violations.append(Violation(rule, detail, self.now))
        self.log(f"VIOLATION {rule}: {detail}")

    def report(self, kind: str, seed: int) -> Report:
        return Report(kind, seed, self._hash.hexdigest(), self.now, self.tally, self.violations, self.lines)
