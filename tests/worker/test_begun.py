"""A coroutine that is begun at once: it ends without waiting, or goes on in the same task."""

from __future__ import annotations

import asyncio

import pytest

from oraculo.worker.begun import Begun


async def forever(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


async def test_a_function_that_does_not_wait_has_ended_at_once() -> None:
    async def five() -> int:
        return 5

    begun = Begun(five())
    assert (begun.ended, begun.value) == (True, 5)


async def test_a_function_that_waits_goes_on_in_the_task_in_which_it_was_begun() -> None:
    tasks = []

    async def waits() -> list[int]:
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(60):
            values = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0.01, 2))
        tasks.append(asyncio.current_task())
        return list(values)

    begun = Begun(waits())
    assert not begun.ended
    async with asyncio.timeout(60):
        assert await begun == [1, 2]
    assert tasks == [asyncio.current_task()] * 2


async def test_a_time_limit_interrupts_what_waits() -> None:
    seen: list[str] = []
    with pytest.raises(TimeoutError):
        begun = Begun(forever(seen))
        async with asyncio.timeout(0.01):
            await begun
    assert seen == ["cancelled"]


async def test_what_it_raises_comes_out_before_and_after_waiting() -> None:
    async def fails(waits: bool) -> None:
        if waits:
            await asyncio.sleep(0)
        raise ValueError(waits)

    with pytest.raises(ValueError, match="False"):
        Begun(fails(waits=False))
    with pytest.raises(ValueError, match="True"):
        await Begun(fails(waits=True))


async def test_cancelling_the_task_reaches_the_function() -> None:
    seen: list[str] = []

    async def job() -> None:
        await Begun(forever(seen))

    task = asyncio.create_task(job())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]
