"""The tasks as people of Celery use them: sent by anybody, refused when they make no sense, stopped in good order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from celery import Celery
from tools.servers.server import free_ports

from contracts.engine_cases import OnCeleryAndRedis, answer, source
from waiting import until

pytestmark = pytest.mark.xdist_group("celery tasks")
SEEDS = """
import sys
from oraculo.engines.celery.tasks import iniciar_coleta
for _ in range(2):
    print(iniciar_coleta.delay(sys.argv[1], sys.argv[2], {"canal": "x"}).get(timeout=60)["novo"])
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnCeleryAndRedis]:
    case = OnCeleryAndRedis(tmp_path_factory.mktemp("celery"))
    case.celery[0].env["ORACULO_METRICS_PORT"] = str(METRICS)
    try:
        case.start()
        yield case
    finally:
        case.close()


def send(fleet: OnCeleryAndRedis, task: str, *args: Any, **kwargs: Any) -> Any:
    """As a program that knows nothing of Oráculo; what the task returned or raised."""
    with Celery("outro", broker=fleet.broker_url, backend=fleet.broker_url) as client:
        result = client.send_task(task, args, kwargs, queue="oraculo")
        try:
            return result.get(timeout=60, propagate=False)
        finally:
            result.backend.result_consumer.stop()
            result.backend.client.connection_pool.disconnect()


def run(fleet: OnCeleryAndRedis, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **fleet.up.env}
    command = (sys.executable, *command)
    return subprocess.run(command, cwd=fleet.folder, env=env, capture_output=True, text=True, timeout=90, check=False)


METRICS_PORTS = 8  # a worker looks this far for one that is free
METRICS = free_ports(METRICS_PORTS)
CONCLUDED = re.compile(r'^orchestration_tickets_completed_total{status="concluida",task_type="coleta"} (\S+)$', re.M)


def _metrics(port: int) -> str:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    except httpx2.TransportError:
        return ""


async def test_every_process_of_a_worker_shows_what_it_saw(fleet: OnCeleryAndRedis) -> None:
    fonte = source()
    before = _concluded()
    name = fleet.submit(coletas=[{"fonte": fonte}])
    order = await fleet.take(fonte)
    send(fleet, "resultado_coleta", mensagens=[answer(order, 1)])  # a worker records it, and not the orchestrator
    assert fleet.result(name)["status"] == "concluida"
    await until(lambda: _seen(before))
    assert len([number for number in range(METRICS_PORTS) if _metrics(METRICS + number)]) == 2, (
        "each has a port of its own"
    )


async def _seen(before: float) -> bool:
    return _concluded() == before + 1


def _concluded() -> float:
    return sum(float(one) for number in range(METRICS_PORTS) for one in CONCLUDED.findall(_metrics(METRICS + number)))


async def test_a_task_of_the_seeds_begins_an_orchestration(fleet: OnCeleryAndRedis) -> None:
    name, fonte = f"abc-{source()}", source()
    said = run(fleet, "-c", SEEDS, name, fonte)
    assert said.stdout.split() == ["True", "False"], said.stderr
    order = await fleet.take(fonte)
    assert order["payload"] == {"fonte": fonte, "parametros": {"canal": "x"}}
    await fleet.send(answer(order, [1, 2]))
    assert fleet.result(name)["coletas"][0]["dados"] == [1, 2]
    await fleet.journal(name)


async def test_answers_may_be_sent_as_tasks(fleet: OnCeleryAndRedis) -> None:
    executor = source()
    name = fleet.submit(execucoes=[{"executador": executor}])
    order = await fleet.take(executor, "executador")
    strange = [answer(order, {"ok": 1}), {"nada": 1}, "nem isto", {"corpo": 7}]
    assert send(fleet, "resultado_execucao", strange) == {"applied": 1, "quarantined": 3}
    assert fleet.result(name)["status"] == "concluida"


def test_deadlines_pass_without_beat_too(fleet: OnCeleryAndRedis) -> None:
    """Whoever forgets to start it gets them some seconds late."""
    beat = fleet.celery[1]
    beat.kill()
    try:
        name = fleet.submit(coletas=[{"fonte": source(), "timeout_s": 0.5, "max_tentativas": 2}])
        result = fleet.result(name)
        assert (result["status"], result["coletas"][0]["tentativas"]) == ("erro", 2)
    finally:
        beat.start().wait()


def test_what_makes_no_sense_fails_at_once_and_says_why(fleet: OnCeleryAndRedis) -> None:
    assert "fonte" in str(send(fleet, "iniciar_coleta", "abc", "não é um nome"))
    assert "unexpected keyword" in str(send(fleet, "resultado_coleta", messages=[]))
    assert send(fleet, "iniciar_coleta", ordens=[[123, 0, 1]]) == {"feitas": 0}
    assert "unpack" in str(send(fleet, "iniciar_coleta", ordens=[[1]]))


def test_a_worker_that_would_lose_tasks_does_not_start(fleet: OnCeleryAndRedis) -> None:
    worker = ("-m", "celery", "-A", "oraculo.engines.celery", "worker")
    done = run(fleet, *worker, "--", "task.acks_late=false")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("oraculo: task_acks_late='False' is not allowed: True")


def test_a_worker_stops_in_good_order(fleet: OnCeleryAndRedis) -> None:
    """Last: it is started again for nobody. Its processes leave the database, so nobody has to take over."""
    worker = fleet.celery[0]
    assert len(worker.children()) == 2
    assert worker.terminate() == 0
    members = fleet.call("GET", "/replicas")
    assert ":celery:" not in json.dumps(members), (members, Path(worker.log).read_text()[-2000:])


def test_every_line_of_worker_and_beat_is_json(fleet: OnCeleryAndRedis) -> None:
    """From the first to the last, Celery's own included: whatever reads the log needs one parser."""
    for process in reversed(fleet.celery):  # beat first: what it sends has to be taken
        if process.running:
            process.terminate()
        said = process.said().splitlines()
        assert [line for line in said if not line.startswith("{")] == []
        lines = [json.loads(line) for line in said]
        assert all({"@timestamp", "log.level", "message", "service.name"} <= set(line) for line in lines)
        own = [line["message"] for line in lines if line["log.logger"].startswith("celery")]
        assert any("ready." in line or "beat: Starting" in line for line in own), own
    assert any("shutdown" in line["message"] for line in map(json.loads, fleet.celery[0].said().splitlines()))
