"""The commit before and this one, in turn on the same machine: is the new code as quick as the old?

    python benchmarks/commits.py --base d1a3f8c                        every case, five rounds
    python benchmarks/commits.py --base ../old --minutes 15            as many rounds as fit; a tree that is set up
    python benchmarks/commits.py --base v0.1.0 --cases memory,redis --rounds 9 --json out.json

Every step starts fresh servers (benchmarks/peers/brokers.py) and `oraculo bench` of one of the two trees; the order
is turned round in every second round (A B, B A, …), and a round has every case once, so that drift of the machine
weighs on both alike. The figure is the ratio of the medians, new : old in speed: 1 is equal, above 1 is faster. Beside
it stand the lowest and the highest ratio of one round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BESIDE = ROOT / "benchmarks" / "peers" / "brokers.py"
STEP_TIMEOUT_S = 600


@dataclass(frozen=True)
class Case:
    """Where the workloads run: the servers beside them, and how `oraculo bench` is told of these."""

    servers: tuple[str, ...]
    arguments: tuple[str, ...]
    sizes: dict[str, int]


CASES = {
    "memory": Case((), (), {"W1": 4000, "W2": 10_000, "SEQ": 300}),
    "redis": Case(("redis",), ("--broker", "{redis}"), {"W1": 4000, "W2": 10_000, "SEQ": 200}),
    "postgres": Case(
        ("redis", "postgres"),
        ("--broker", "{redis}", "--store", "{postgres}"),
        {"W1": 3000, "W2": 5000, "SEQ": 200},
    ),
    "celery": Case(
        ("redis", "postgres"),
        ("--broker", "{redis}", "--store", "{postgres}", "--engine", "celery"),
        {"W1": 1000, "W2": 2000, "SEQ": 60},
    ),
    "temporal": Case(
        ("temporal",), ("--engine", "temporal", "--temporal", "{temporal}"), {"W1": 300, "W2": 2000, "SEQ": 40}
    ),
}


def speed(workload: str, found: dict[str, float]) -> float:
    """Larger is faster: orchestrations a second, or the inverse of what one took."""
    if workload == "SEQ":
        return 1000 / found["p50_ms"]
    return found["orchestrations"] / found["seconds"] if workload == "W1" else 1 / found["seconds"]


def step(tree: Path, case: Case, workload: str) -> float:
    """One measurement of one tree."""
    command = [str(tree / ".venv" / "bin" / "oraculo"), "bench", "--workload", workload]
    command += ["-n", str(case.sizes[workload]), *case.arguments, "--json"]
    if case.servers:
        command = [str(ROOT / ".venv" / "bin" / "python"), str(BESIDE), ",".join(case.servers), *command]
    with tempfile.TemporaryDirectory(prefix="bench-commits-") as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STEP_TIMEOUT_S, cwd=folder)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return speed(workload, json.loads(done.stdout.strip().rpartition("\n")[2]))


def pair(old: Path, new: Path, case: Case, workload: str, number: int) -> tuple[float, float]:
    """One round: both trees, the one that comes first in turns."""
    if number % 2 == 0:
        first = step(old, case, workload)
        return first, step(new, case, workload)
    first = step(new, case, workload)
    return step(old, case, workload), first


def figures_of(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    olds, news = zip(*pairs, strict=True)
    ratios = [b / a for a, b in pairs]
    return {
        "old": statistics.median(olds),
        "new": statistics.median(news),
        "ratio": statistics.median(news) / statistics.median(olds),
        "lowest": min(ratios),
        "highest": max(ratios),
        "rounds": len(pairs),
    }


def compared(old: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Every case in every round; a round that would not end in time is not begun."""
    began, longest = time.monotonic(), 0.0
    pairs: dict[str, list[tuple[float, float]]] = {}
    figures: dict[str, dict[str, float]] = {}
    for number in range(options.rounds):
        at = time.monotonic()
        if at - began + longest > options.minutes * 60:
            break
        for name in options.cases.split(","):
            for workload in options.workloads.split(","):
                key = f"{name} {workload}"
                pairs.setdefault(key, []).append(pair(old, ROOT, CASES[name], workload, number))
                found = figures[key] = figures_of(pairs[key])
                print(
                    f"{name:9} {workload:4} old {found['old']:10.3f}  new {found['new']:10.3f}  "
                    f"new : old {found['ratio']:.3f}  ({found['lowest']:.3f} to {found['highest']:.3f})",
                    flush=True,
                )
                if options.json:
                    options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        longest = max(longest, time.monotonic() - at)
    return figures


def checked_out(commit: str, folder: Path) -> Path:
    """The tree of that commit with a virtual environment of its own."""
    tree = folder / "old"
    subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", str(tree), commit], check=True)
    subprocess.run(["make", "-C", str(tree), ".venv/.installed"], check=True)
    return tree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="the older commit, or the folder of a tree that is set up")
    parser.add_argument("--cases", default=",".join(CASES), help="of " + ", ".join(CASES))
    parser.add_argument("--workloads", default="W1,W2,SEQ")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=240, help="no round begins that would end later")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-base-") as folder:
        given = Path(options.base)
        old = given.resolve() if given.is_dir() else checked_out(options.base, Path(folder))
        try:
            figures = compared(old, options)
        finally:
            if not given.is_dir():
                subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(old)], check=False)
    slower = [name for name, found in figures.items() if found["ratio"] < 0.97]
    print(f"slower than 0.97 of the old one: {', '.join(slower) or 'none'}")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
