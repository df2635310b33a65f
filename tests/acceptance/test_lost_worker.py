"""A registered worker that is killed: out of discovery when its lease has ended by the database's clock, and its ticket
is done by another one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import psycopg
import pytest

from acceptance.conftest import Process, Server
from databases import database
from waiting import eventually

API = "/api/v1"
TIMEOUT_S = 5
LATE_S = 1  # after the end of a lease
WORK = """
import os, time
from oraculo import Worker

worker = Worker(name=os.environ["NOME"])


@worker.escavador("lenta")
def lenta(parametros):
    open("comecou", "w").close()
    while os.environ["NOME"] == "primeiro":
        time.sleep(0.1)
    return os.environ["NOME"]
"""


def _clock_of(store: str) -> Callable[[], datetime]:
    """The clock of the database: of PostgreSQL its own, of SQLite that of its process, which is this machine's."""

    def postgres() -> datetime:
        with psycopg.connect(store) as connection:
            found = connection.execute("SELECT clock_timestamp()").fetchone()
            assert found is not None
            at: datetime = found[0]
            return at

    def sqlite() -> datetime:
        with apsw.Connection(":memory:") as connection:
            [(micros,)] = connection.execute("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)").fetchall()
            return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)

    return postgres if store.startswith("postgresql") else sqlite


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_worker_that_is_killed_is_gone_in_time_and_its_ticket_moves_on(tmp_path: Path, kind: str) -> None:
    store = await database() if kind == "postgres" else f"sqlite:///{tmp_path / 'oraculo.db'}"
    (tmp_path / "trabalho.py").write_text(WORK)
    server = Server(tmp_path, [])
    server.env |= {"ORACULO_STORE": store, "ORACULO_WORKER_TIMEOUT_S": str(TIMEOUT_S), "ORACULO_LEASE_S": "3600"}
    server.up()
    workers: list[Process] = []
    try:
        for name in ("primeiro", "segundo"):
            folder = tmp_path / name
            folder.mkdir()
            env = {"NOME": name, "ORACULO_WORKER_REGISTRY": "true", "PYTHONPATH": str(tmp_path)}
            workers.append(Process(["worker", "trabalho:worker", "--url", server.url], folder, env))
        _kill_and_see(server, workers, _clock_of(store))
    finally:
        for one in [*workers, server]:
            if one.running:
                one.kill()


def _kill_and_see(server: Server, workers: list[Process], clock: Callable[[], datetime]) -> None:
    first, second = workers

    def living() -> list[str]:
        answer = server.call("GET", f"{API}/workers?fila=escavador_lenta&limit=10")
        assert answer is not None and answer.status_code == 200
        return [one["nome"] for one in answer.json()["workers"] if one["situacao"] != "perdido"]

    def lease_of(name: str) -> datetime:
        answer = server.call("GET", f"{API}/workers/{name}")
        assert answer is not None and answer.status_code == 200
        return datetime.fromisoformat(answer.json()["expira_em"])

    first.begin()
    eventually(lambda: living() == ["primeiro"], "the worker registers")
    body = {"coletas": [{"fonte": "lenta", "timeout_s": 3600, "max_tentativas": 1}], "correlation_id": "r1"}
    accepted = server.call("POST", f"{API}/orchestrations", json=body)
    assert accepted is not None and accepted.status_code == 202
    eventually((first.cwd / "comecou").exists, "it works on the ticket")
    second.begin()
    eventually(lambda: sorted(living()) == ["primeiro", "segundo"], "the other one registers")
    assert first.popen is not None
    first.popen.send_signal(signal.SIGKILL)
    first.wait()
    lease = lease_of("primeiro")  # may be renewed by a heartbeat that is still to be written

    def gone() -> bool:
        nonlocal lease
        answer = server.call("GET", f"{API}/workers/primeiro")
        if answer is not None and answer.status_code == 200:
            lease = max(lease, datetime.fromisoformat(answer.json()["expira_em"]))
        at = clock()
        still = "primeiro" in living()
        assert not still or at <= lease + timedelta(seconds=LATE_S), f"listed at {at}, its lease ended at {lease}"
        return not still

    eventually(gone, "it is gone")
    result = server.result("r1")
    assert (result["status"], result["coletas"][0]["dados"]) == ("concluida", "segundo")
    answer = server.call("GET", f"{API}/orchestrations/r1/events")
    assert answer is not None
    [moved] = [one for one in answer.json()["events"] if one["evento"] == "ticket_withdrawn"]
    assert (moved["worker"], moved["causa"], moved["tentativa"]) == ("primeiro", "realocado", 1)
