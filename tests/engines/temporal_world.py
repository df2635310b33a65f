"""An orchestrator with the engine `temporal`, on SQLite and in this process, and a worker that the test plays."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from services.temporal import settings_of
from temporalio.client import Client

from acceptance.journals import replay
from contracts.engine_cases import answer
from oraculo.bootstrap import Oraculo
from oraculo.core.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.commands import Start
from oraculo.core.vocabulary import Kind, RiskBand
from oraculo.engines.temporal.engine import TemporalEngine
from oraculo.ports.broker import Settlement
from oraculo.runtime.intake import result_work
from oraculo.runtime.work import Work
from oraculo.settings import load
from oraculo.wire import names

PATIENCE = 20.0


class World:
    """An orchestrator on SQLite, and whoever works for it."""

    def __init__(self, oraculo: Oraculo) -> None:
        self.oraculo = oraculo
        assert isinstance(oraculo.engine, TemporalEngine)
        self.engine = oraculo.engine

    @property
    def temporal(self) -> Client:
        client = self.engine.link._client
        assert client is not None
        return client

    async def submit(self, count: int, **more: Any) -> tuple[str, list[str]]:
        """Its id, and its sources."""
        sources = [f"f{secrets.token_hex(4)}" for _ in range(count)]
        coletas = [{"fonte": source, "parametros": {"n": n}} for n, source in enumerate(sources)]
        accepted = await self.oraculo.submit({"coletas": coletas, **more})
        return accepted.correlation_id, sources

    async def order(self, source: str, kind: str = "escavador") -> dict[str, Any]:
        broker = self.engine.broker
        found = await broker.fetch(f"{kind}_{source}", limit=1, wait=PATIENCE)
        assert found, f"no order for {source}"
        await broker.settle([Settlement(one) for one in found])
        order: dict[str, Any] = json.loads(found[0].body)
        return order

    async def answer(self, *orders: dict[str, Any], dados: Any = 1, errors: list[Any] | None = None) -> None:
        said = [answer(order, dados, errors=errors) for order in orders]
        works = [result_work(json.dumps(one).encode(), names.RESULTS) for one in said]
        await self.engine.submit(works)

    async def plan(self, *tasks: TaskNode, approval: bool = False) -> str:
        """A plan of Fluxo C whose tickets go to the queue of its own name; its id."""
        name, now = f"p{secrets.token_hex(4)}", self.engine.clock.now()
        nodes = tuple(replace(task, worker=name) for task in tasks)
        order = tuple(task.task_id for task in tasks)
        wanted = CognitivePlan(name, "i1", nodes, order, RiskBand.HIGH, requires_approval=approval)
        plan = plan_of(wanted, FlowRules(), now, partial(names.queue_of, Kind.EXECUCAO), name=name)
        run = self.engine.numbers.next(now)
        await self.engine.submit([Work(Start(run, name, plan), name, fresh=True)])
        return name

    async def result(self, name: str) -> dict[str, Any]:
        found = await self.oraculo.result(name, wait=PATIENCE)
        assert found is not None
        return found

    async def check(self, name: str) -> None:
        """The journal replays to itself."""
        run = await self.oraculo.run_of(name)
        replay(run, (await self.engine.store.load([run]))[run])


@asynccontextmanager
async def opened(folder: Path, url: str, **env: str) -> AsyncIterator[World]:
    settings = {"ORACULO_STORE": f"sqlite:///{folder / 'oraculo.db'}", "ORACULO_RETRY_BASE_S": "0.05"}
    queue = {"TEMPORAL_TASK_QUEUE": f"t-{secrets.token_hex(4)}"}
    async with Oraculo(load({**settings, **settings_of(url), **queue, **env}, None)) as oraculo:
        world = World(oraculo)
        yield world


async def connected(world: World) -> World:
    async with asyncio.timeout(PATIENCE):
        while world.engine.failing is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return world


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await what():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def marked(world: World) -> bool:
    return world.engine.link.marked


async def closed(world: World, name: str, count: int) -> bool:
    state = await world.oraculo.state(name)
    return sum(ticket.closed_at is not None for ticket in state.tickets) == count
