"""What a replica does with what it took over, on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from contracts.writing import begin, write
from databases import database, opened
from oraculo.errors import StoreUnavailableError
from oraculo.runtime.kernel.takeover import TakeOver


async def test_what_was_taken_over_is_sent_although_the_store_goes_away_in_between() -> None:
    """It is in our hands already: nobody else would send it as long as we live."""
    sent: list[list[int]] = []

    async def rescued(runs: Sequence[int]) -> None:
        sent.append(list(runs))
        if len(sent) == 1:
            raise StoreUnavailableError("the database is being restarted")

    async with AsyncExitStack() as stack:
        url = await database()
        dead, alive = await opened(stack, url), await opened(stack, url)
        takeover = TakeOver(alive, "viva", rescued, lambda _runs: None)
        await alive.join("viva", timedelta(seconds=10))
        await takeover.look()
        await dead.join("morta", timedelta(0))
        story = begin()
        await write(dead, story.started)
        with pytest.raises(StoreUnavailableError):
            await takeover.look()
        await takeover.look()
        await takeover.look()
    assert sent == [[story.run], [story.run]]
