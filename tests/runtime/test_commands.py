"""The queue before the commit loop: what moves runs on comes before what opens new ones."""

from __future__ import annotations

import asyncio

from core.given import RUN, plan
from oraculo.core.commands import Cancel, Start, Wake
from oraculo.ports.work import Work
from oraculo.runtime.kernel.commands import CommandQueue
from waiting import until

BATCH = 16


def request(number: int) -> Work:
    return Work(Start(RUN + number, str(number), plan(1), "f"), str(number))


def timer(number: int) -> Work:
    return Work(Wake(), run=RUN + number)


async def waiting_requests(queue: CommandQueue, count: int) -> list[asyncio.Task[object]]:
    """Callers that each handed in one request and wait for it."""
    callers = [asyncio.create_task(queue.submit([request(number)])) for number in range(count)]
    await until(lambda: len(queue) == count)
    return list(callers)


async def end(callers: list[asyncio.Task[object]]) -> None:
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)


async def test_timers_are_taken_before_requests_that_came_earlier() -> None:
    queue = CommandQueue()
    callers = await waiting_requests(queue, 5)
    queue.enqueue([timer(1), timer(2)])
    taken = await queue.take(BATCH)
    assert [type(work.command) for work in taken] == [Wake, Wake, *[Start] * 5]
    assert [work.correlation_id for work in taken[2:]] == list("01234")
    await end(callers)


async def test_questions_about_runs_are_taken_before_requests() -> None:
    queue = CommandQueue()
    callers = await waiting_requests(queue, 2)
    callers.append(asyncio.create_task(queue.submit([Work(Cancel(), run=RUN)])))
    await until(lambda: len(queue) == 3)
    assert type((await queue.take(1))[0].command) is Start  # the part of a batch that is for requests
    assert type((await queue.take(2))[0].command) is Cancel
    await end(callers)


async def test_requests_have_a_part_of_every_batch_however_much_else_there_is() -> None:
    queue = CommandQueue()
    callers = await waiting_requests(queue, 6)
    queue.enqueue([timer(number) for number in range(100)])
    taken = [type(work.command) for work in await queue.take(BATCH)]
    assert taken == [*[Wake] * 14, *[Start] * 2]
    await end(callers)


async def test_a_request_that_no_caller_waits_for_is_progress() -> None:
    """A child of a plan, for example: its parent waits for it."""
    queue = CommandQueue()
    callers = await waiting_requests(queue, 1)
    queue.enqueue([request(7)])
    assert [work.correlation_id for work in await queue.take(BATCH)] == ["7", "0"]
    await end(callers)
