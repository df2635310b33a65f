"""Whatever is read, hidden or shown takes time in proportion to its length: nothing that is sent stops the event loop.

Processor time of one thread is measured, at a length and at four times that length. Work in proportion takes four times
as long, a search that begins anew at every character sixteen times. The shapes are those that were slow once, in this
project or in others, and pieces of them put together at random.
"""

from __future__ import annotations

import gc
import re
import time
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from security.readers import MIB, PIECES, READERS, Reader

RATIO_MAX = 10.0  # of four times the length; in proportion it is 4, with each character looked at from each other 16
NOTHING_S = 0.03  # processor time that holds up nobody: less at the limit is not worth a ratio
TRIES = 4


def _seconds(reader: Reader, given: str) -> float:
    """Processor time of this thread, refusals included."""
    began = time.thread_time()
    with suppress(*reader.refusals, ValueError, RecursionError):
        reader.run(given)
    return time.thread_time() - began


def _is_slow(reader: Reader, shape: str) -> str | None:
    """What was measured, when it is more than in proportion; the quickest of several tries counts."""
    long = (shape * (reader.limit // len(shape.encode()) + 1))[: reader.limit]
    short = long[: len(long) // 4]
    whole = _seconds(reader, long)
    if whole < NOTHING_S:
        return None
    quarter = _seconds(reader, short)
    for _ in range(TRIES):
        if whole <= RATIO_MAX * max(quarter, NOTHING_S / 4):
            return None
        whole = min(whole, _seconds(reader, long))
        quarter = max(quarter, _seconds(reader, short))
    return f"{shape[:60]!r} × {len(long) // len(shape)}: {whole:.3f} s, a quarter of it {quarter:.4f} s"


@pytest.fixture(autouse=True)
def no_collection() -> Any:
    """The garbage of other tests is not the work of a reader."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_time_is_in_proportion_to_the_length(reader: Reader) -> None:
    random = Random(reader.name)
    mixed = ["".join(random.choices(PIECES, k=random.randint(2, 6))) for _ in range(10)]
    found = [_is_slow(reader, shape) for shape in (*PIECES, *mixed)]
    assert [one for one in found if one is not None] == []


def test_the_measure_sees_a_search_that_begins_anew_at_every_character() -> None:
    """In doubt the measure lets a reader pass, and a busy machine gives it doubts; so it may look several times."""
    quadratic = Reader("quadratic", 32 * 1024, re.compile("a*b").search)  # as searches for secrets once were
    assert any(_is_slow(quadratic, "a") is not None for _ in range(20))
    assert _is_slow(Reader("linear", MIB, lambda given: given.count("b")), "a") is None
