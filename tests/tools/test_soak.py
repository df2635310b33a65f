"""The soak: its slope, its progress, and a small one that goes on where it stopped."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import soak


@pytest.fixture
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_slope_and_its_confidence() -> None:
    found, bound = soak.slope([0, 1, 2, 3], [5, 7, 9, 11])
    assert (found, bound) == (2, 0)
    found, bound = soak.slope([0, 1, 2, 3], [1, -1, 1, -1])
    assert abs(found) < bound, "noise is no growth"
    assert math.isnan(soak.slope([1, 1], [2, 3])[1])


@pytest.mark.usefixtures("as_before")
async def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = await soak.soak("memory", 4000, 0.0, tmp_path)
    assert [one["messages"] for one in first] == [4000]
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"messages": 99')
    both = await soak.soak("memory", 8000, 0.0, tmp_path)
    assert [one["messages"] for one in both] == [4000, 8000]
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["messages"] for line in lines] == [4000, 8000]
    told = soak.report(both)
    assert told["messages"] == 8000
    assert all(told[name]["last"] >= 0 for name in soak.MEASURES)
