"""One seed, one world: the same trace in this process, in another one, and however the seeds are spread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest

from oraculo.simulation.run import KINDS, run_many, run_world

pytestmark = pytest.mark.xdist_group("determinism")  # the first traces are made once

SEEDS = range(300, 307)


def worlds_of(seeds: range) -> list[tuple[str, int]]:
    """Every kind with these seeds."""
    return [(kind, seed) for kind in KINDS for seed in seeds]


WORLDS = worlds_of(SEEDS)
PROGRAM = (
    f"from oraculo.simulation.run import run_world\nprint([run_world(kind, seed).trace for kind, seed in {WORLDS!r}])"
)


@cache
def first_traces() -> list[str]:
    return traces()


def traces() -> list[str]:
    return [run_world(kind, seed).trace for kind, seed in WORLDS]


def test_same_seed_same_trace() -> None:
    assert traces() == first_traces()


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_same_trace_in_another_process(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(first_traces())


def test_keeping_the_lines_changes_nothing() -> None:
    for kind in KINDS:
        kept = run_world(kind, 7, keep=True)
        assert kept.lines
        assert kept.trace == run_world(kind, 7).trace


def test_processes_do_not_matter() -> None:
    worlds = worlds_of(range(8))
    alone, spread = run_many(worlds, jobs=1), run_many(worlds, jobs=2)
    assert alone.trace == spread.trace
    assert alone.tally == spread.tally
    assert alone.worlds == spread.worlds == len(worlds)


def test_other_seed_other_trace() -> None:
    assert len(set(first_traces())) == len(WORLDS)


def test_every_kind_is_compared_with_more_than_one_seed() -> None:
    assert min(Counter(kind for kind, _ in WORLDS).values()) > 1
    assert {kind for kind, _ in WORLDS} == set(KINDS)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not a kind of world"):
        run_world("flat", 1)
