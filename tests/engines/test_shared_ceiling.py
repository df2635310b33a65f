"""Replicas share the ceiling: each keeps to its part from its first moment on, also while nothing waits."""

from __future__ import annotations

from contracts.engine_cases import of_its_own
from databases import database
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from servers import shared
from waiting import until


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
    engine = one.engine
    assert isinstance(engine, Kernel) and isinstance(engine._effects, EffectRunner)
    ceiling = engine._effects._ceiling
    assert ceiling is not None
    return ceiling.limit


async def _becomes(one: Oraculo, limit: int) -> None:
    await until(lambda: _limit(one) == limit)
