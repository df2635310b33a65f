"""Kinds of worlds, and running many of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from multiprocessing import get_context

from oraculo.simulation.core_world import run_core
from oraculo.simulation.retry_world import run_retry
from oraculo.simulation.trace import Report, Violation
from oraculo.simulation.world import run_engine

KINDS = (
    *("core-masked", "core-unmasked", "flow-masked", "flow-unmasked", "tasks-masked", "tasks-unmasked"),
    *("maps-masked", "maps-unmasked", "loops-masked", "loops-unmasked"),
    *("children-masked", "children-unmasked", "waits-masked", "waits-unmasked"),
    *("undo-masked", "undo-unmasked", "retries-masked", "retries-unmasked"),
    *("masked", "unmasked", "ceiling-masked", "ceiling-unmasked"),
    *("brokers-masked", "brokers-unmasked", "tokens-masked", "tokens-unmasked"),
    *("replicas-masked", "replicas-unmasked", "breaker-masked", "breaker-unmasked"),
    *("plans-masked", "plans-unmasked", "chosen-masked", "chosen-unmasked", "fleet-masked", "fleet-unmasked"),
    *("unique-masked", "unique-unmasked"),
)
_CORE = ("core", "flow", "tasks", "maps", "loops", "children", "waits", "undo", "retries")
CORE_KINDS = tuple(kind for kind in KINDS if kind.startswith(_CORE))
CHUNK_SEEDS = 25


def run_world(kind: str, seed: int, *, keep: bool = False) -> Report:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of world; there are {', '.join(KINDS)}")
    what, _, masked = kind.rpartition("-")
    if what in ("ceiling", "brokers", "tokens", "replicas", "breaker", "plans", "chosen", "fleet", "unique"):
        return run_engine(seed, masked=masked == "masked", keep=keep, what=what)
    if what == "retries":
        return run_retry(seed, masked=masked == "masked", keep=keep)
    if what:
        return run_core(seed, masked=masked == "masked", what=what, keep=keep)
    return run_engine(seed, masked=kind == "masked", keep=keep)


@dataclass(slots=True)
class Summary:
    """Many worlds in one: totals, one hash over all traces in order, and every violation."""

    worlds: int = 0
    virtual_s: float = 0.0
    processor_s: float = 0.0
    tally: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, int, list[Violation]]] = field(default_factory=list)
    traces: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        self.worlds += 1
        self.virtual_s += report.virtual_s
        self.tally += report.tally
        self.traces[report.kind, report.seed] = report.trace
        if report.violations:
            self.failures.append((report.kind, report.seed, report.violations))

    def merge(self, other: Summary) -> None:
        self.worlds += other.worlds
        self.virtual_s += other.virtual_s
        self.processor_s += other.processor_s
        self.tally += other.tally
        self.traces |= other.traces
        self.failures += other.failures

    @property
    def trace(self) -> str:
        """The same for the same seeds, however they were spread over processes."""
        whole = blake2b(digest_size=16)
        for (kind, seed), trace in sorted(self.traces.items()):
            whole.update(f"{kind} {seed} {trace}\n".encode())
        return whole.hexdigest()


def run_chunk(worlds: Sequence[tuple[str, int]]) -> Summary:
    summary, began = Summary(), time.process_time()
    for kind, seed in worlds:
        summary.add(run_world(kind, seed))
    summary.processor_s = time.process_time() - began
    return summary


def run_many(
    worlds: Sequence[tuple[str, int]], jobs: int, progress: Callable[[Summary], None] | None = None
) -> Summary:
    """All of them, over `jobs` processes; `progress` gets each part as it comes in."""
    chunks = [worlds[start : start + CHUNK_SEEDS] for start in range(0, len(worlds), CHUNK_SEEDS)]
    total = Summary()
    for part in run_chunks(chunks, jobs):
        total.merge(part)
        if progress is not None:
            progress(part)
    total.failures.sort(key=lambda failure: (failure[0], failure[1]))
    return total


def run_chunks(chunks: Sequence[Sequence[tuple[str, int]]], jobs: int) -> Iterator[Summary]:
    """What came out of each, in their order, over `jobs` processes."""
    if jobs <= 1 or len(chunks) <= 1:
        yield from map(run_chunk, chunks)
        return
    with ProcessPoolExecutor(min(jobs, len(chunks)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_chunk, chunks)
