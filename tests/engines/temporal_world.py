"""An orchestrator with the engine `temporal`, on SQLite and in this process, and a worker that the test plays."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.client import Client
from tools.servers.temporal import settings_of

from acceptance.journals import replay
from contracts.engine_cases import answer
from oraculo.core.commands import Start
from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.vocabulary import Kind, RiskBand
from oraculo.engines.temporal.engine import TemporalEngine
from oraculo.ports.broker import Settlement
from oraculo.ports.work import Work
from oraculo.runtime.answers import AnswerReader
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire import names
from waiting import DEADLINE_S, until


class World:
    """An orchestrator on SQLite, and whoever works for it."""

    def __init__(self, oraculo: Oraculo) -> None:
        self.oraculo = oraculo
        assert isinstance(oraculo.engine, TemporalEngine)
        self.engine = oraculo.engine

    @property
    def temporal(self) -> Client:
        client = self.engine.connection._client
        assert client is not None
        return client

    async def submit(self, count: int, **more: Any) -> tuple[str, list[str]]:
        """Its id, and its sources."""
        sources = [f"f{secrets.token_hex(4)}" for _ in range(count)]
        coletas = [{"fonte": source, "parametros": {"n": n}} for n, source in enumerate(sources)]
        accepted = await self.oraculo.submit({"coletas": coletas, **more})
        return accepted.correlation_id, sources

    async def order(self, source: str, kind: str = "escavador") -> dict[str, Any]:
        broker = self.oraculo.broker
        found = await broker.fetch(f"{kind}_{source}", limit=1, wait=DEADLINE_S)
        assert found, f"no order for {source}"
        await broker.settle([Settlement(one) for one in found])
        order: dict[str, Any] = json.loads(found[0].body)
        return order

    async def answer(self, *orders: dict[str, Any], dados: Any = 1, errors: list[Any] | None = None) -> None:
        said = [answer(order, dados, errors=errors) for order in orders]
        works = [AnswerReader()(json.dumps(one).encode(), names.RESULTS) for one in said]
        await self.engine.submit(works)

    async def plan(self, *tasks: TaskNode, approval: bool = False) -> str:
        """A plan of Fluxo C whose tickets go to the queue of its own name; its id."""
        name, now = f"p{secrets.token_hex(4)}", self.oraculo.now()
        nodes = tuple(replace(task, worker=name) for task in tasks)
        order = tuple(task.task_id for task in tasks)
        wanted = CognitivePlan(name, "i1", nodes, order, RiskBand.HIGH, requires_approval=approval)
        plan = plan_of(wanted, FlowRules(), now, partial(names.queue_of, Kind.EXECUCAO), name=name)
        run = self.engine.next_run()
        await self.engine.submit([Work(Start(run, name, plan), name, fresh=True)])
        return name

    async def result(self, name: str) -> dict[str, Any]:
        found = await self.oraculo.result(name, wait=DEADLINE_S)
        assert found is not None
        return found

    async def check(self, name: str) -> None:
        """The journal replays to itself."""
        run = await self.oraculo.run_of(name)
        replay(run, (await self.oraculo.store.load([run]))[run])


@asynccontextmanager
async def opened(folder: Path, url: str, **env: str) -> AsyncIterator[World]:
    settings = {"ORACULO_STORE": f"sqlite:///{folder / 'oraculo.db'}", "ORACULO_RETRY_BASE_S": "0.05"}
    queue = {"TEMPORAL_TASK_QUEUE": f"t-{secrets.token_hex(4)}"}
    async with Oraculo(load({**settings, **settings_of(url), **queue, **env}, None)) as oraculo:
        world = World(oraculo)
        yield world


async def connected(world: World) -> World:
    await until(lambda: world.engine.status().outage is None)
    return world


async def marked(world: World) -> bool:
    return world.engine.connection.marked


async def closed(world: World, name: str, count: int) -> bool:
    state = await world.oraculo.state(name)
    return sum(ticket.closed_at is not None for ticket in state.tickets) == count
