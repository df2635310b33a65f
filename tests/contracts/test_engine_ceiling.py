"""On every engine two processes on one database let no more tickets of prioritised plans out than may be, also when one
of them is killed. The worker has nothing but the broker; the journal is counted afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.conftest import Server
from acceptance.journals import most_at_once
from contracts.engine_cases import OnCeleryAndRedis, OnServers, OnTemporalAndServers, answer, source
from waiting import DEADLINE_S, eventually, until

LIMIT = 3
FLEETS = {"local": OnServers, "celery": OnCeleryAndRedis, "temporal": OnTemporalAndServers}
ENGINES = [pytest.param(name, marks=pytest.mark.xdist_group(f"fleet-{name}")) for name in FLEETS]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OnServers]:
    case = FLEETS[request.param](tmp_path)
    case.up.env |= {"SCHEDULER_MAX_PARALLEL_TICKETS": str(LIMIT), "ORACULO_REPLICA_LEASE_S": "2"}
    try:
        yield case
    finally:
        case.close()


@pytest.fixture
def other(engine: OnServers, tmp_path: Path) -> Iterator[Server]:
    """Another process of the same fleet, which may have to take over."""
    (tmp_path / "other").mkdir()
    server = Server(tmp_path / "other", [])
    server.env = dict(engine.up.env)
    engine.start()
    server.up()
    try:
        yield server
    finally:
        server.kill()


def tasks(executor: str, priority: int, count: int) -> dict[str, Any]:
    return {f"p{priority}_{n}": {"executador": executor, "prioridade": priority} for n in range(count)}


class Worker:
    """Holds orders. One that was sent twice counts once."""

    def __init__(self, engine: OnServers, executor: str) -> None:
        self._engine, self._executor = engine, executor
        self._known: set[tuple[str, int]] = set()
        self.held: list[dict[str, Any]] = []

    async def take(self, count: int = 1) -> None:
        while count:
            order = await self._engine.take(self._executor, "executador")
            if (order["ticket_id"], order["tentativa"]) not in self._known:
                self._known.add((order["ticket_id"], order["tentativa"]))
                self.held.append(order)
                count -= 1

    async def answer(self) -> None:
        """For the one that is held for the longest."""
        await self._engine.send(answer(self.held.pop(0), "feito"))


async def test_the_ceiling_of_named_tasks_is_one_for_the_fleet(engine: OnServers, other: Server) -> None:
    executor = source()
    worker = Worker(engine, executor)
    calm = engine.submit(tarefas=tasks(executor, 2, 6))
    await worker.take(LIMIT)
    await until(lambda: _is_reached(engine), "the journal knows of all that are out")
    asked = {"tarefas": tasks(executor, 9, 2), "correlation_id": f"urgente-{executor}"}
    urgent = eventually(lambda: other.call("POST", "/api/v1/orchestrations", json=asked)).json()["correlation_id"]
    for _ in range(2):
        await worker.answer()
        await worker.take()
    assert [one["correlation_id"] for one in worker.held] == [calm, urgent, urgent]
    engine.up.kill()
    for left in range(6, 0, -1):
        await worker.answer()
        await worker.take(1 if left > LIMIT else 0)
    for name in (calm, urgent):
        assert other.result(name, DEADLINE_S)["status"] == "concluida"
    assert await most_at_once(engine.store_url) == LIMIT


async def _is_reached(engine: OnServers) -> bool:
    return await most_at_once(engine.store_url) == LIMIT
