"""No more tickets of Fluxo C are with workers than may be, over a whole Celery fleet, whoever of it dies. The worker is
plain redis-py and counts what it holds; the journal is counted afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from acceptance.conftest import Server
from acceptance.hive import plan, task
from acceptance.journals import most_at_once
from contracts.engine_cases import OnCeleryAndRedis, answer
from contracts.writing import begin, write
from core.given import T0
from core.test_flow import made, node
from oraculo.adapters.clock import MonotonicClock
from oraculo.bootstrap.adapters import store_of
from oraculo.engines.celery_engine.effects import TaskSender
from oraculo.runtime.kernel.ceiling.journal import JournalCeiling
from waiting import DEADLINE_S, eventually

pytestmark = pytest.mark.xdist_group("celery ceiling")
LIMIT = 3
TICKETS, RESULTS, GROUP = "execution.tickets", "orquestrador_resultados", "oraculo"
BANDS = {"low": 12, "medium": 8, "high": 8, "critical": 6}
HELD_BACK = re.compile(r"^orchestration_tickets_held_back (\S+)$", re.M)
FAILS = [{"codigo": "quebrou", "mensagem": "não deu", "definitivo": False}]
FAILS_FOR_GOOD = [{**FAILS[0], "definitivo": True}]


class Worker:
    """Takes whatever is there and answers what it is told to. `most`: held at the same time."""

    def __init__(self, url: str) -> None:
        self._client = redis.Redis.from_url(url, socket_timeout=10)
        with contextlib.suppress(redis.ResponseError):  # it is there already
            self._client.xgroup_create(TICKETS, GROUP, "0", mkstream=True)
        self.held: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.most = 0
        self._known: set[tuple[str, int]] = set()

    def take(self, patience: float = DEADLINE_S) -> bool:
        """Until there is something new."""
        until = time.monotonic() + patience
        before = len(self.taken)
        while time.monotonic() < until:
            found: Any = self._client.xreadgroup(GROUP, "teste", {TICKETS: ">"}, count=100, block=100)
            for number, fields in found[0][1] if found else ():
                order = json.loads(fields[b"mensagem"])
                self._client.xack(TICKETS, GROUP, number)
                if (order["ticket_id"], order["tentativa"]) not in self._known:  # what was sent twice counts once
                    self._known.add((order["ticket_id"], order["tentativa"]))
                    self.taken.append(order)
                    self.held.append(order)
            self.most = max(self.most, len(self.held))
            if len(self.taken) > before:
                return True
        return False

    def hold(self, count: int) -> None:
        while len(self.held) < count:
            assert self.take(), f"{len(self.held)} of {count}"

    def answer(self, errors: list[dict[str, Any]] | None = None) -> None:
        """To the ticket that is held for the longest."""
        body = json.dumps(answer(self.held.pop(0), "feito", errors=errors))
        self._client.xadd(RESULTS, {"mensagem": body})

    def purge(self) -> bool:
        """As `celery purge` does; whether a task was lost."""
        return bool(self._client.delete(f"oraculo.{TICKETS}"))


class Fleet(OnCeleryAndRedis):
    """With a second orchestrator, that may have to take over."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "other").mkdir()
        self.other = Server(folder / "other", [])
        self.other.env = dict(self.up.env)

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "SCHEDULER_MAX_PARALLEL_TICKETS": str(LIMIT)}

    def start(self) -> None:
        super().start()
        self.other.up()

    def kill(self) -> None:
        if self.other.running:
            self.other.kill()
        super().kill()

    @staticmethod
    def held_back(server: Server) -> int:
        answer = server.call("GET", "/metrics")
        found = HELD_BACK.search(answer.text) if answer is not None else None
        return int(float(found[1])) if found else -1


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    case = Fleet(tmp_path_factory.mktemp("ceiling"))
    try:
        case.start()
        yield case
    finally:
        case.close()


def bring(fleet: Fleet, name: str, tasks: list[dict[str, Any]], band: str, **more: Any) -> str:
    wanted = plan(name, [{**one, "timeout_ms": 600_000} for one in tasks], risk_band=band, **more)
    taken: str = fleet.call("POST", "/plans", json=wanted)["correlation_id"]
    return taken


def wide(name: str, width: int) -> list[dict[str, Any]]:
    return [task(f"{name}{n}") for n in range(width)]


def test_the_bound_holds_the_urgent_go_first_and_another_one_takes_over(fleet: Fleet) -> None:
    worker = Worker(fleet.broker_url)
    plans = [bring(fleet, "low", wide("low", BANDS["low"]), "low")]
    worker.hold(LIMIT)
    approved = bring(fleet, "critical", wide("critical", BANDS["critical"]), "critical", requires_approval=True)
    undone = bring(fleet, "undone", [task("a"), task("b", "a", max_retries=0)], "critical")
    plans += [approved, undone]
    plans += [bring(fleet, band, wide(band, BANDS[band]), band) for band in ("medium", "high")]
    assert fleet.call("POST", f"/orchestrations/{approved}/approve", json={"por": "ana"})["aplicada"] is True
    waiting = sum(BANDS.values()) + 1 - LIMIT
    eventually(lambda: fleet.held_back(fleet.up) == waiting)
    assert fleet.held_back(fleet.other) == 0
    total = sum(BANDS.values()) + 5  # with two that undo others, and one that is tried again
    for left in range(total, 0, -1):
        worker.hold(min(LIMIT, left))
        if left == total - 15:
            fleet.up.kill()  # its duty goes to the other one when its lease is over
        first = worker.held[0]
        if first["task_id"] == "b" and first["task_type"] != "COMPENSATE":
            worker.answer(FAILS_FOR_GOOD)  # it and what it depends on are undone
        else:
            worker.answer(FAILS if first["task_id"] == "high3" and first["tentativa"] == 1 else None)
    results = {name: fleet.other.result(name, DEADLINE_S) for name in plans}
    assert {name: result["status"] for name, result in results.items()} == {
        name: "parcial" if name == undone else "concluida" for name in plans
    }
    assert worker.most == LIMIT
    assert asyncio.run(most_at_once(fleet.store_url)) <= LIMIT
    kinds = [order["task_type"] for order in worker.taken]
    attempts = [order["tentativa"] for order in worker.taken]
    assert (kinds.count("COMPENSATE"), attempts.count(2), len(kinds)) == (2, 1, total)
    firsts = [one for one in worker.taken if one["tentativa"] == 1 and one["task_type"] != "COMPENSATE"]
    bands = [band for band, _ in groupby(order["risk_band"] for order in firsts)]
    assert bands == ["low", "critical", "high", "medium", "low"]


async def test_a_task_that_celery_lost_is_sent_again_and_a_new_worker_finds_it(
    fleet: Fleet,
) -> None:
    fleet.kill()
    worker = Worker(fleet.broker_url)
    clock = MonotonicClock()
    sender = TaskSender(Celery("teste", broker=fleet.broker_url), clock)
    async with store_of(fleet.store_url) as store:
        shared = store.sharing
        assert shared is not None
        await shared.join("teste", timedelta(minutes=10))
        since = (clock.now() - T0).total_seconds()
        story = begin(wanted=made(*(node(f"t{n}") for n in range(LIMIT + 1))), when=since)
        await write(shared, story.started, when=since)
        ceiling = JournalCeiling(shared, clock, sender, LIMIT, timedelta(seconds=1))
        running = [asyncio.create_task(one) for one in (ceiling.run(), sender.run())]
        await asyncio.to_thread(eventually, worker.purge)
        fleet.celery[0].start()
        await asyncio.to_thread(worker.hold, LIMIT)
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        sender.close()
    assert sorted(order["task_id"] for order in worker.held) == [f"t{n}" for n in range(LIMIT)]
