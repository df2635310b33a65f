"""The page that goes through the requirements one by one: each names tests that exist, and those that are otherwise
the page that says why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HOLDS, OTHERWISE = "✓", "–"


@dataclass(frozen=True, slots=True)
class Row:
    number: int
    mark: str
    shown_by: str


def rows() -> list[Row]:
    lines = (DOCS / "requirements.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)]
    return [Row(int(number), mark, shown_by) for number, mark, _requirement, _before, shown_by in cells]


def test_every_requirement_is_there_once_and_in_order() -> None:
    assert [row.number for row in rows()] == list(range(1, 123))
    assert {row.mark for row in rows()} == {HOLDS, OTHERWISE}


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row.number))
def test_what_a_row_names_exists(row: Row) -> None:
    named = re.findall(r"`(tests/[^`]+)`", row.shown_by)
    assert named
    for one in named:
        path, _, function = one.partition("::")
        assert (ROOT / path).exists(), one
        if function:
            assert re.search(rf"def {function}\(", (ROOT / path).read_text(encoding="utf-8")), one
    pages = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", row.shown_by)
    assert pages or row.mark == HOLDS
    for page, anchor in pages:
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}, page
