"""Replicas share the ceiling: each keeps to its part from its first moment on, also while nothing waits."""

from __future__ import annotations

import asyncio

from contracts.engine_cases import of_its_own
from databases import database
from oraculo.bootstrap import Oraculo
from oraculo.settings import load
from servers import shared


async def test_who_joins_has_its_part_at_once_and_the_others_soon() -> None:
    given = {
        "ORACULO_STORE": await database(),
        "ORACULO_BROKER": of_its_own(shared("redis"), 9),
        "SCHEDULER_MAX_PARALLEL_TICKETS": "10",
    }
    async with Oraculo(load({**given, "ORACULO_REPLICA_NAME": "a"}, None)) as first:
        assert _limit(first) == 10
        async with Oraculo(load({**given, "ORACULO_REPLICA_NAME": "b"}, None)) as second:
            assert _limit(second) == 5
            await _becomes(first, 5)
        await _becomes(first, 10)


def _limit(one: Oraculo) -> int:
    ceiling = one.engine.performer.ceiling
    assert ceiling is not None
    return ceiling.limit


async def _becomes(one: Oraculo, limit: int) -> None:
    async with asyncio.timeout(30):
        while _limit(one) != limit:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
