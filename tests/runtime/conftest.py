from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from runtime.doubles import DirectEngine, FailingBroker, FailingStore, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store() -> AsyncIterator[FailingStore]:
    async with FailingStore() as store:
        yield store


@pytest.fixture
async def broker() -> AsyncIterator[FailingBroker]:
    broker = FailingBroker()
    yield broker
    await broker.close()


@pytest.fixture
def engine(store: FailingStore, clock: ManualClock) -> DirectEngine:
    return DirectEngine(store, clock)
