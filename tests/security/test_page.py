"""The page on security names tests that exist: a promise whose test is gone is noticed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_test_that_the_table_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) >= 25
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {name}"


def test_every_threat_has_its_row_and_each_a_test_or_says_that_it_is_open() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| T\d", line)]
    numbers = [int(number) for row in rows for number in re.findall(r"T(\d+)", row.split("|")[1])]
    assert numbers == list(range(1, 26))
    assert [row for row in rows if "::" not in row and "Open" not in row] == []


def test_every_attack_that_worked_once_has_its_row_and_each_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| V\d", line)]
    assert [row.split("|")[1].strip() for row in rows] == [f"V{number}" for number in range(1, 28)]
    assert [row for row in rows if "::" not in row] == []
