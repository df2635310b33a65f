"""Workers of a broker wait for offers, as real processes: they get what was chosen for them, and what a worker does not
begin in time goes to another one and is not begun late."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import servers
from acceptance.conftest import Process, Server
from acceptance.fleet import NAMES, QUICK
from databases import database
from waiting import eventually

API = "/api/v1"
ON = {
    "ENABLE_INTELLIGENT_SCHEDULER": "true",
    "ORACULO_WORKER_REGISTRY": "true",
    "SCHEDULER_OFFERS": "true",
    "SCHEDULER_OFFER_SECONDS": "1",
    "LOG_LEVEL": "WARNING",
}
WORK = """
import os
from oraculo import Worker

worker = Worker(name=os.environ["NOME"], concurrency=1)


@worker.escavador("pedida")
async def pedida(parametros, correlation_id):
    with open("feitos", "a") as done:
        done.write(correlation_id + "\\n")
    return os.environ["NOME"]
"""


class Market:
    """A server that makes offers on a broker, and its workers."""

    def __init__(self, folder: Path, broker: str, store: str = "") -> None:
        self.folder = folder
        (folder / "trabalho.py").write_text(WORK)
        self.broker = broker
        self.server = Server(folder, [])
        self.server.env |= {"ORACULO_BROKER": broker, **({"ORACULO_STORE": store} if store else {}), **ON}
        self.workers: dict[str, Process] = {}

    def hire(self, name: str) -> Process:
        folder = self.folder / name
        folder.mkdir()
        env = {"NOME": name, "PYTHONPATH": str(self.folder), "ORACULO_BROKER": self.broker, **ON}
        one = self.workers[name] = Process(["worker", "trabalho:worker"], folder, env)
        one.begin()
        eventually(lambda: name in self._registered(), f"{name} registers")
        return one

    def _registered(self) -> list[str]:
        answer = self.server.call("GET", f"{API}/workers?limit=10")
        return [] if answer is None or answer.status_code != 200 else [one["nome"] for one in answer.json()["workers"]]

    def submit(self, name: str) -> None:
        body = {"coletas": [{"fonte": "pedida", "timeout_s": 3600, "max_tentativas": 1}], "correlation_id": name}
        accepted = self.server.call("POST", f"{API}/orchestrations", json=body)
        assert accepted is not None and accepted.status_code == 202

    def did(self, run: str) -> Any:
        document = self.server.result(run)
        assert document["status"] == "concluida"
        return document["coletas"][0]["dados"]

    def events(self, run: str, kind: str) -> list[dict[str, Any]]:
        answer = self.server.call("GET", f"{API}/orchestrations/{run}/events")
        assert answer is not None and answer.status_code == 200
        return [one for one in answer.json()["events"] if one["evento"] == kind]

    def begun_by(self, name: str) -> list[str]:
        done = self.folder / name / "feitos"
        return done.read_text().split() if done.exists() else []

    def close(self) -> None:
        for one in [*self.workers.values(), self.server]:
            if one.running:
                one.kill()


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(f"offers-{name}")) for name in NAMES])
def market(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Market]:
    service = servers.own(request.param, tmp_path / "broker")
    service.start()
    one = Market(tmp_path, service.url + QUICK[request.param])
    try:
        one.server.up()
        yield one
    finally:
        one.close()
        service.kill()


def test_what_a_stopped_worker_was_offered_goes_to_another_and_is_not_begun_late(market: Market) -> None:
    first = market.hire("primeiro")
    market.submit("a")
    assert market.did("a") == "primeiro"
    [given] = market.events("a", "ticket_allocated")
    assert (given["agent_id"], given["tentativa"]) == ("primeiro", 1)
    assert first.popen is not None
    first.popen.send_signal(signal.SIGSTOP)
    eventually(lambda: first.stopped, "it stands still")
    market.submit("b")
    eventually(lambda: market.events("b", "ticket_withdrawn") != [], "its offer is withdrawn")
    second = market.hire("segundo")
    assert market.did("b") == "segundo"
    gone = market.events("b", "ticket_withdrawn")
    assert {(one["causa"], one["worker"]) for one in gone} == {("oferta_vencida", "primeiro")}
    second.terminate()
    first.go_on()
    market.submit("c")
    assert market.did("c") == "primeiro"
    assert market.begun_by("primeiro") == ["a", "c"] and market.begun_by("segundo") == ["b"]


async def test_two_servers_on_one_store_offer_each_ticket_once_and_either_may_die(tmp_path: Path) -> None:
    store, service = await database(), servers.own("redis", tmp_path / "broker")
    service.start()
    folders = [tmp_path / name for name in ("um", "dois")]
    for folder in folders:
        folder.mkdir()
    market, other = (Market(folder, service.url + QUICK["redis"], store) for folder in folders)
    try:
        market.server.up()
        other.server.up()
        market.hire("primeiro")
        market.hire("segundo")
        for number in range(20):
            (market, other)[number % 2].submit(f"r{number}")
        did = [market.did(f"r{number}") for number in range(20)]
        assert set(did) <= {"primeiro", "segundo"}
        for number, name in enumerate(did):
            given = market.events(f"r{number}", "ticket_allocated")
            assert [(one["agent_id"], one["tentativa"]) for one in given] == [(name, 1)]
        assert sorted(market.begun_by("primeiro") + market.begun_by("segundo")) == sorted(f"r{n}" for n in range(20))
        for number, (dies, lives) in enumerate(((market, other), (other, market))):
            dies.server.kill()  # whichever of them makes the offers, the other one goes on
            lives.submit(f"depois{number}")
            assert lives.did(f"depois{number}") in ("primeiro", "segundo")
            dies.server.up()
    finally:
        market.close()
        other.close()
        service.kill()
