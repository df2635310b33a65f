from __future__ import annotations

import asyncio

from oraculo.runtime.watchers import RunWatchers


async def test_watchers_are_told_of_their_own_orchestration_only() -> None:
    feed = RunWatchers()
    with feed.watch(1) as one, feed.watch(2) as two:
        feed.changed(1)
        assert one.is_set() and not two.is_set()
    feed.changed(1)
    assert feed._watchers == {}


async def test_everybody_who_waits_for_the_end_gets_the_result() -> None:
    feed = RunWatchers()
    waiting = [feed.ending(7) for _ in range(3)]
    feed.ended(7, b"{}")
    assert await asyncio.gather(*waiting) == [b"{}"] * 3
    feed.ended(7, b"again")


async def test_who_gave_up_is_forgotten() -> None:
    feed = RunWatchers()
    future = feed.ending(7)
    feed.forget(7, future)
    feed.forget(7, future)
    feed.ended(7, b"{}")
    assert not future.done() and feed._waiters == {}
    cancelled = feed.ending(8)
    cancelled.cancel()
    feed.ended(8, b"{}")
