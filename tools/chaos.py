"""`make chaos`: every test of faults in its long form, one after the other, to the end whatever fails.

    .venv/bin/python -m tools.chaos [--kills 30] [--file .chaos/results.jsonl] [--fresh] [words of names…]

Each test runs in a pytest of its own; what it says and how long it took is printed and written down as it ends. Started
again at the same commit with the same number of kills it goes on where it stopped: what passed is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = (
    "tests/acceptance/test_kill.py",
    "tests/acceptance/test_broker_kills.py",
    "tests/acceptance/test_broker_faults.py",
    "tests/acceptance/test_failover.py",
    "tests/acceptance/test_replicas.py",
    "tests/acceptance/test_celery_faults.py",
    "tests/acceptance/test_temporal_faults.py",
    "tests/acceptance/test_flow_c_kills.py",
    "tests/acceptance/test_flow_c_steps.py",
    "tests/acceptance/test_flow_c_large.py",
    "tests/contracts/test_broker_server.py",
)
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
SAID_MAX_CHARS = 2000
OUTCOMES = {0: PASSED, 5: SKIPPED}  # of pytest; 5: no test was left to run


@dataclass(frozen=True, slots=True)
class Result:
    commit: str
    kills: int
    test: str
    outcome: str
    seconds: float
    said: str


def collect(kills: int, tests: Sequence[str] = TESTS) -> list[str]:
    """The ids of all tests, in the order in which they run."""
    done = _pytest(kills, "--collect-only", "-q", *tests)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return [line for line in done.stdout.splitlines() if "::" in line]


def run_one(test: str, commit: str, kills: int) -> Result:
    began = time.monotonic()
    done = _pytest(kills, "-q", "-s", "--no-header", test)
    seconds = round(time.monotonic() - began, 1)
    outcome = OUTCOMES.get(done.returncode, FAILED)
    if outcome == PASSED and "passed" not in done.stdout:
        outcome = SKIPPED
    return Result(commit, kills, test, outcome, seconds, done.stdout[-SAID_MAX_CHARS:])


def _pytest(kills: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ORACULO_CHAOS_KILLS": str(kills)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def known(file: Path) -> list[Result]:
    """What earlier runs wrote down; a line that was cut off is left out."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            found.append(Result(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def left(tests: Sequence[str], results: Sequence[Result], commit: str, kills: int) -> list[str]:
    """The tests that did not pass at this commit with at least so many kills."""
    passed = {one.test for one in results if one.commit == commit and one.kills >= kills and one.outcome == PASSED}
    return [test for test in tests if test not in passed]


def commit_here() -> str:
    """The commit, marked when files differ from it: such results are no proof of the commit."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return said.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--file", type=Path, default=ROOT / ".chaos" / "results.jsonl")
    parser.add_argument("--fresh", action="store_true", help="run again what passed")
    parser.add_argument("words", nargs="*", help="only tests whose id has one of these")
    asked = parser.parse_args()
    asked.file.parent.mkdir(parents=True, exist_ok=True)
    commit, before = commit_here(), known(asked.file)
    tests = [one for one in collect(asked.kills) if not asked.words or any(word in one for word in asked.words)]
    todo = tests if asked.fresh else left(tests, before, commit, asked.kills)
    _say(f"{commit}, {asked.kills} kills: {len(todo)} of {len(tests)} tests to run, results in {asked.file}")
    failed = []
    for number, test in enumerate(todo, 1):
        _say(f"[{number}/{len(todo)}] {test} …")
        result = run_one(test, commit, asked.kills)
        with asked.file.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        _say(f"    {result.outcome} in {result.seconds} s\n{_indented(result)}")
        if result.outcome == FAILED:
            failed.append(test)
    _say(f"{len(todo) - len(failed)} of {len(todo)} did not fail" + "".join(f"\n  failed: {one}" for one in failed))
    raise SystemExit(1 if failed else 0)


def _indented(result: Result) -> str:
    lines = [line for line in result.said.splitlines() if line.strip(" .")]
    return "\n".join(f"      {line[:300]}" for line in lines[-30 if result.outcome == FAILED else -6 :])


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
