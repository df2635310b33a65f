"""Replicas and the ceiling: it is one for all, also when one dies."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from core.test_flow import made, node
from databases import database
from oraculo.core.commands import RecordResult, Start
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import RiskBand
from oraculo.ports.work import Work
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from servers import redis_database
from waiting import until

LIMIT = 3


async def test_the_ceiling_of_fluxo_c_is_one_for_all_and_counts_what_a_dead_one_sent() -> None:
    given = {
        "ORACULO_STORE": await database(),
        "ORACULO_BROKER": redis_database(),
        "SCHEDULER_MAX_PARALLEL_TICKETS": str(LIMIT),
        "ORACULO_REPLICA_LEASE_S": "2",
    }
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(Oraculo(load({**given, "ORACULO_REPLICA_NAME": "b"}, None)))
        first = Oraculo(load({**given, "ORACULO_REPLICA_NAME": "a"}, None))
        async with first:
            runs = [await _begin(one, f"p{n}") for n, one in enumerate((first, second, first, second))]
            await until(lambda: _has_out(second, runs, LIMIT))
            await asyncio.sleep(2.0)  # time enough for each to let out as many as it thinks it may
            assert await _out(second, runs) == LIMIT
        await asyncio.sleep(3.0)  # the one that is left has taken over
        assert await _out(second, runs) == LIMIT
        run, position = await _one_that_is_out(second, runs)
        answer = RecordResult(True, b"1", [], ticket=ticket_id(run, position), attempt=1)
        await second.engine.submit([Work(answer, run=run)])
        await until(lambda: _closed_and_out(second, runs, 1, LIMIT))


async def _begin(one: Oraculo, name: str) -> int:
    run = one.engine.next_run()
    plan = made(*(node(f"t{n}") for n in range(3)), band=RiskBand.LOW)
    await one.engine.submit([Work(Start(run, name, plan, name), name)])
    return run


async def _states(one: Oraculo, runs: list[int]) -> list[Orchestration]:
    found = [await one.engine.state(run) for run in runs]
    return [state for state in found if state is not None]


async def _out(one: Oraculo, runs: list[int]) -> int:
    return sum(ticket.running for state in await _states(one, runs) for ticket in state.tickets)


async def _has_out(one: Oraculo, runs: list[int], count: int) -> bool:
    return await _out(one, runs) == count


async def _closed_and_out(one: Oraculo, runs: list[int], closed: int, out: int) -> bool:
    tickets = [ticket for state in await _states(one, runs) for ticket in state.tickets]
    return sum(ticket.closed_at is not None for ticket in tickets) == closed and await _has_out(one, runs, out)


async def _one_that_is_out(one: Oraculo, runs: list[int]) -> tuple[int, int]:
    for state in await _states(one, runs):
        for position, ticket in enumerate(state.tickets):
            if ticket.running:
                return state.run, position
    raise AssertionError("none is out")
