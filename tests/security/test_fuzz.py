"""What chance makes of messages, documents and requests: every reader takes it or refuses it, in the words that it has
for that, and no route fails. `make fuzz` goes on for an hour, with another beginning every time; `make test` looks at a
few hundred texts for each reader, always the same.

A text that was found says its seed: `ORACULO_FUZZ_SEED` begins there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random

import pytest

import processor_time
from security.mutation import mutated
from security.readers import READERS, Reader

SECONDS = float(os.environ.get("ORACULO_FUZZ_SECONDS", "0"))  # 0: a fixed number of texts
SEED = int(os.environ.get("ORACULO_FUZZ_SEED", "0"))
TEXTS = 150
LOOP_MAX_S = 0.05  # that the event loop may be held
TEXT_MAX_BYTES = 64 * 1024  # in `make test`; longer ones are tried in test_slow_inputs, and by `make fuzz`


def rounds(share: float = 1.0) -> Iterator[int]:
    """Seeds, until the time is over; with a share, so many times as long."""
    until = time.monotonic() + SECONDS * share
    for seed in count(SEED):
        if seed - SEED >= TEXTS if not SECONDS else time.monotonic() > until:
            return
        yield seed


def fault_of(reader: Reader, seed: int) -> str | None:
    """What was wrong with the reading of one text."""
    random = Random(f"{reader.name} {seed}")
    limit = reader.limit if SECONDS else min(reader.limit, TEXT_MAX_BYTES)
    given = mutated(random, reader.seeds, limit)
    if not reader.raw:
        given = given.encode("utf-8", "replace").decode()
    run = partial(_read, reader, given)
    began = time.thread_time()
    try:
        run()
    except Exception as error:
        return f"seed {seed}: {error!r} for {given[:200]!r}"
    if time.thread_time() - began > LOOP_MAX_S and processor_time.seconds(run, LOOP_MAX_S) > LOOP_MAX_S:
        return f"seed {seed}: too slow with {len(given)} characters: {given[:100]!r}"
    return None


def _read(reader: Reader, given: str) -> None:
    with suppress(*reader.refusals):
        reader.run(given)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_reader_takes_or_refuses_whatever_comes(reader: Reader) -> None:
    found = [wrong for seed in rounds() if (wrong := fault_of(reader, seed)) is not None]
    assert found[:5] == []
