"""The zoo: broken variants of our own code, each of which the worlds must notice.

A proof that never fails proves nothing. Every mutant here is a small mistake that is easily made; `hunt` says at
which seed, in which kind of world and by which rule it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from oraculo.simulation.run import run_world
from oraculo.simulation.trace import Violation


@contextmanager
def patched(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Replace attributes for a while: (owner, name, new value)."""
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.callback(setattr, owner, name, owner.__dict__[name])
            setattr(owner, name, value)
        yield


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    apply: Callable[[], AbstractContextManager[None]]
    kinds: tuple[str, ...]  # where it is hunted; the first that notices wins
    seeds: int  # within how many seeds of each kind it must be found
    first: int = 0  # the first of them: some are noticed by few worlds, and some make a world endless


@dataclass(frozen=True, slots=True)
class Kill:
    mutant: str
    kind: str
    seed: int
    violation: Violation


def hunt(mutant: Mutant) -> Kill | None:
    """The first world that notices the mutant; None when it survives."""
    with mutant.apply():
        for seed in range(mutant.first, mutant.first + mutant.seeds):
            for kind in mutant.kinds:
                report = run_world(kind, seed)
                if report.violations:
                    return Kill(mutant.name, kind, seed, report.violations[0])
    return None


def zoo() -> list[Mutant]:
    """All of them."""
    from oraculo.simulation import (
        mutants_allocations,
        mutants_breakers,
        mutants_brokers,
        mutants_ceiling,
        mutants_children,
        mutants_core,
        mutants_families,
        mutants_loops,
        mutants_maps,
        mutants_pauses,
        mutants_replicas,
        mutants_requeue,
        mutants_retries,
        mutants_runtime,
        mutants_tasks,
        mutants_tokens,
        mutants_undo,
        mutants_unique,
        mutants_waits,
        mutants_withdrawals,
    )

    at_the_edges = (
        mutants_runtime,
        mutants_ceiling,
        mutants_breakers,
        mutants_brokers,
        mutants_tokens,
        mutants_replicas,
        mutants_unique,
    )
    plans = (mutants_tasks, mutants_maps, mutants_loops, mutants_children, mutants_waits, mutants_undo)
    kept = (mutants_requeue, mutants_retries, mutants_withdrawals, mutants_pauses, mutants_allocations)
    rooms = (mutants_core, *plans, *kept, *at_the_edges, mutants_families)
    return [mutant for room in rooms for mutant in room.MUTANTS]
