"""One seed, one world: the same trace in this process, in another one, and however the seeds are spread."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from oraculo.simulation.run import KINDS, run_many, run_world

SEEDS = range(300, 307)
PROGRAM = (
    "from oraculo.simulation.run import KINDS, run_world\n"
    f"print([run_world(kind, seed).trace for kind in KINDS for seed in range({SEEDS.start}, {SEEDS.stop})])"
)


@cache
def first_traces() -> list[str]:
    return traces()


def traces() -> list[str]:
    return [run_world(kind, seed).trace for kind in KINDS for seed in SEEDS]


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
    worlds = [(kind, seed) for seed in range(8) for kind in KINDS]
    alone, spread = run_many(worlds, jobs=1), run_many(worlds, jobs=2)
    assert alone.trace == spread.trace
    assert alone.tally == spread.tally
    assert alone.worlds == spread.worlds == len(worlds)


def test_other_seed_other_trace() -> None:
    assert len({run_world(kind, seed).trace for kind in KINDS for seed in SEEDS}) == len(KINDS) * len(SEEDS)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not a kind of world"):
        run_world("flat", 1)
