"""The queue before the commit loop: what moves runs on comes before what opens new ones."""

from __future__ import annotations

import asyncio

from core.given import RUN, plan
from oraculo.core.commands import Cancel, Start, Wake
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, local_name, tenant_of
from oraculo.ports.work import Work
from oraculo.runtime.kernel.commands import CommandQueue
from waiting import until

BATCH = 16


def request(number: int, tenant: str = DEFAULT_TENANT) -> Work:
    name = in_tenant(tenant, str(number))
    return Work(Start(RUN + number, name, plan(1), "f"), name)


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


async def handed_in(queue: CommandQueue, tenant: str, count: int) -> asyncio.Task[object]:
    """A caller of a tenant that handed in so many requests at once."""
    before = len(queue)
    caller = asyncio.create_task(queue.submit([request(number, tenant) for number in range(count)]))
    await until(lambda: len(queue) == before + count)
    return caller


async def test_requests_of_tenants_are_taken_in_turns() -> None:
    queue = CommandQueue()
    callers = [await handed_in(queue, "a", 500), await handed_in(queue, "b", 2), await handed_in(queue, "c", 70)]
    taken = [tenant_of(work.correlation_id) for work in await queue.take(200)]
    assert taken == [*["a"] * 64, *["b"] * 2, *["c"] * 64, *["a"] * 64, *["c"] * 6]
    names = [local_name(work.correlation_id) for work in await queue.take(1000)]
    assert names == [str(number) for number in range(128, 500)]  # in the order in which they came
    await end(callers)


async def test_a_tenant_with_little_does_not_wait_for_the_room_of_one_with_much() -> None:
    queue = CommandQueue(limit=100)
    callers = [await handed_in(queue, "a", 150)]
    callers.append(asyncio.create_task(queue.submit([request(1000, "a")])))
    callers.append(await handed_in(queue, "b", 3))  # beside the one that waits
    assert len(queue) == 153
    assert [tenant_of(work.correlation_id) for work in await queue.take(67)] == [*["a"] * 64, *["b"] * 3]
    await queue.take(64)
    await until(lambda: len(queue) == 23)  # there is room for it now
    await end(callers)
