"""A file that keeps what worlds were run, so that a million of them can be run in pieces: one JSON line for each part.

A part is a range of seeds, with a world of each kind for each seed. It names the code that it was run with by a hash of
the package's files: what was run with other code is kept in the file, and counts for that code only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from os import SEEK_END
from pathlib import Path
from typing import Any

import orjson

import oraculo
from oraculo.adapters.clock import MonotonicClock
from oraculo.simulation.run import Summary, run_chunks

PART_SEEDS = 25


@dataclass(frozen=True, slots=True)
class SeedRange:
    """A range of seeds, and what came out."""

    code: str
    kinds: Sequence[str]
    first: int
    seeds: int
    worlds: int
    virtual_s: float
    tally: dict[str, int]
    violations: list[tuple[str, int, list[str]]]
    trace: str
    processor_s: float
    at: str

    @property
    def range(self) -> tuple[int, int]:
        return self.first, self.seeds


def code_hash() -> str:
    """The hash of all files of the package: the same for the same code, whatever its version is called."""
    folder, whole = Path(oraculo.__file__).parent, blake2b(digest_size=8)
    for path in sorted(folder.rglob("*.py")):
        whole.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return whole.hexdigest()


class WorldLedger:
    """The parts in a file; a line that was cut off when a process was killed is left out, and its part is run again."""

    def __init__(self, path: Path, kinds: Sequence[str]) -> None:
        self._path, self._kinds, self._code = path, list(kinds), code_hash()
        self.parts: list[SeedRange] = []
        for part in self._read():
            if part.code == self._code and list(part.kinds) == self._kinds:
                self.parts.append(part)

    def _read(self) -> Iterator[SeedRange]:
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            try:
                yield SeedRange(**orjson.loads(line))
            except (ValueError, TypeError):
                continue

    def run(self, first: int, seeds: int, jobs: int, progress: Callable[[Summary], None] | None = None) -> None:
        """Run what of this range is not in the file, and write down each part as it ends."""
        left = self._left(first, seeds)
        chunks = [[(kind, seed) for seed in range(at, at + count) for kind in self._kinds] for at, count in left]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for (at, count), summary in zip(left, run_chunks(chunks, jobs), strict=True):
            part = self._part(at, count, summary)
            self.parts.append(part)
            with self._path.open("ab") as file:
                file.write(self._start_of_line() + orjson.dumps(part) + b"\n")
            if progress is not None:
                progress(summary)

    def _left(self, first: int, seeds: int) -> list[tuple[int, int]]:
        """Ranges of seeds that are in no part yet, none twice and none longer than a part."""
        done = {seed for part in self.parts for seed in range(part.first, part.first + part.seeds)}
        left: list[tuple[int, int]] = []
        for seed in (one for one in range(first, first + seeds) if one not in done):
            at, count = left[-1] if left else (seed, 0)
            if left and seed == at + count and count < PART_SEEDS:
                left[-1] = (at, count + 1)
            else:
                left.append((seed, 1))
        return left

    def _start_of_line(self) -> bytes:
        """A line break, when the last line was cut off."""
        with self._path.open("a+b") as file:
            if file.tell() == 0:
                return b""
            file.seek(-1, SEEK_END)
            return b"" if file.read(1) == b"\n" else b"\n"

    def _part(self, first: int, seeds: int, summary: Summary) -> SeedRange:
        return SeedRange(
            code=self._code,
            kinds=self._kinds,
            first=first,
            seeds=seeds,
            worlds=summary.worlds,
            virtual_s=summary.virtual_s,
            tally=dict(summary.tally),
            violations=[(kind, seed, [str(one) for one in found]) for kind, seed, found in summary.failures],
            trace=summary.trace,
            processor_s=round(summary.processor_s, 2),
            at=MonotonicClock().now().isoformat(timespec="seconds"),
        )

    def document(self) -> dict[str, Any]:
        """All parts of this code in one: totals, every violation, and one hash over the traces in order."""
        parts = sorted(self.parts, key=lambda part: part.range)
        tally: dict[str, int] = {}
        trace = blake2b(digest_size=16)
        for part in parts:
            trace.update(part.trace.encode())
            for name, count in part.tally.items():
                tally[name] = tally.get(name, 0) + count
        return {
            "code": self._code,
            "kinds": self._kinds,
            "ranges": _joined([part.range for part in parts]),
            "seeds": sum(part.seeds for part in parts),
            "worlds": sum(part.worlds for part in parts),
            "virtual_s": sum(part.virtual_s for part in parts),
            "tally": tally,
            "violations": [one for part in parts for one in part.violations],
            "trace": trace.hexdigest(),
            "processor_s": round(sum(part.processor_s for part in parts), 1),
        }


def _joined(ranges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """First and last seed of what was run, with neighbours in one."""
    found: list[list[int]] = []
    for first, count in ranges:
        if found and found[-1][1] == first - 1:
            found[-1][1] = first + count - 1
        else:
            found.append([first, first + count - 1])
    return found
