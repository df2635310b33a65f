"""`make chaos` goes on where it stopped, and knows every test of faults."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from tools.chaos import FAILED, PASSED, Result, known, left

from tools import chaos

TESTS = ["a::one", "a::two", "b::three"]


def result(test: str, outcome: str = PASSED, commit: str = "c1", kills: int = 30) -> Result:
    return Result(commit, kills, test, outcome, 1.0, "")


def test_only_what_did_not_pass_at_this_commit_is_left() -> None:
    results = [result("a::one"), result("a::two", FAILED), result("b::three", commit="c0")]
    assert left(TESTS, results, "c1", 30) == ["a::two", "b::three"]
    assert left(TESTS, [result("a::one", kills=5)], "c1", 30) == TESTS
    assert left(TESTS, [result("a::one", kills=100)], "c1", 30) == TESTS[1:]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    assert known(file) == []
    whole = json.dumps(asdict(result("a::one")))
    file.write_text(f"{whole}\n{whole[:20]}")
    assert known(file) == [result("a::one")]


def test_every_test_that_has_a_long_form_is_in_it() -> None:
    tests = Path(__file__).parent.parent
    long = [
        str(Path("tests") / path.relative_to(tests))
        for path in tests.rglob("test_*.py")
        if re.search(r"^from acceptance\.chaos import|^KILLS = .*ORACULO_CHAOS_KILLS", path.read_text(), re.MULTILINE)
    ]
    assert sorted(chaos.TESTS) == sorted(long)
