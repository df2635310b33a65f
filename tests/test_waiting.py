import asyncio

import pytest

from waiting import eventually, until


class Counter:
    """Gives a true value at the `at`-th call."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls if self.calls >= self.at else 0

    def __repr__(self) -> str:
        return f"Counter(calls={self.calls})"


async def test_until_returns_the_first_true_value() -> None:
    assert await until(Counter(3), pause=0) == 3


async def test_until_awaits_an_awaitable_condition() -> None:
    counter = Counter(2)

    async def counted() -> int:
        await asyncio.sleep(0)
        return counter()

    assert await until(counted, pause=0) == 2


async def test_until_gives_up_on_a_condition_that_hangs() -> None:
    with pytest.raises(AssertionError, match="the impossible; last value: None"):
        await until(asyncio.Event().wait, "the impossible", within=0.01)


async def test_until_counts_an_ignored_error_as_false_and_names_it_at_the_deadline() -> None:
    def away() -> bool:
        raise ConnectionError("no server")

    with pytest.raises(AssertionError, match="no server"):
        await until(away, within=0.01, ignoring=(ConnectionError,))
    with pytest.raises(ConnectionError):
        await until(away)


def test_eventually_returns_the_first_true_value() -> None:
    assert eventually(Counter(3), pause=0) == 3


def test_a_failure_shows_the_condition_and_the_variables_it_reads() -> None:
    counter = Counter(1_000_000)
    with pytest.raises(AssertionError) as failed:
        eventually(lambda: counter() == -1, within=0.02)
    assert "lambda: counter() == -1" in str(failed.value)
    assert "last value: False" in str(failed.value)
    assert f"counter = Counter(calls={counter.calls})" in str(failed.value)
