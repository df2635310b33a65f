"""Workers in processes of their own, leasing over HTTP from a real server that may die at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.processes import Process, Server
from oraculo import Client, Worker
from oraculo.client.results import RunResult
from waiting import DEADLINE_S, eventually

Begin = Callable[..., Process]


def collect(fonte: str, **more: Any) -> dict[str, Any]:
    parametros = more.pop("parametros", {})
    return {"coletas": [{"fonte": fonte, "parametros": parametros, **more}]}


def run(server: Server, request: dict[str, Any], wait: float = DEADLINE_S) -> RunResult:
    with Client(server.url) as client:
        result = client.result(client.submit(request).correlation_id, wait)
    assert result is not None, "it did not end"
    return result


def held(server: Server) -> int:
    with Client(server.url) as client:
        return sum(one["em_andamento"] for one in client.workers()["workers"])


def test_results_failures_and_what_cannot_be_a_result(server: Server, worker: Begin) -> None:
    worker()
    assert run(server, collect("eco", parametros={"é": [1.5, None]}))["coletas"][0]["dados"] == {"é": [1.5, None]}
    assert run(server, collect("falha", parametros={"ok_na": 3}))["coletas"][0]["dados"] == 3

    final = run(server, collect("falha", parametros={"definitivo": True}, max_tentativas=5))["coletas"][0]
    assert (final["status"], final["tentativas"], final["erros"][0]["codigo"]) == ("erro", 1, "f1")

    crashed = run(server, collect("quebra", max_tentativas=2))["coletas"][0]
    assert (crashed["tentativas"], crashed["erros"][0]) == (
        2,
        {"codigo": "RuntimeError", "mensagem": "quebrou", "definitivo": False},
    )
    strange = run(server, collect("estranho"))["coletas"][0]
    assert (strange["tentativas"], strange["erros"][0]["codigo"]) == (1, "resultado_invalido")
    huge = run(server, collect("enorme"))["coletas"][0]
    assert (huge["tentativas"], huge["erros"][0]["codigo"]) == (1, "resultado_invalido")
    assert "bytes" in huge["erros"][0]["mensagem"]

    both = run(server, {**collect("eco"), "execucoes": [{"executador": "soma"}]})
    assert both["execucoes"][0]["resultado"] == {"soma": 1}
    assert held(server) == 0


async def test_a_worker_finds_its_server_by_url_or_by_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in ({"url": server.url}, {}):
        if not given:
            monkeypatch.setenv("ORACULO_URL", server.url)
            monkeypatch.setenv("ORACULO_BROKER", "memory://")
        worker = Worker()
        worker.collector("dobro")(lambda params: params["n"] * 2)
        running = asyncio.create_task(worker.run(**given))
        try:
            result = await asyncio.to_thread(run, server, collect("dobro", parametros={"n": 21}))
            assert result["coletas"][0]["dados"] == 42
        finally:
            worker.stop()
            await running


def test_a_script_works_for_ever_and_ends_at_a_signal(server: Server, tmp_path: Path) -> None:
    code = (
        "from oraculo import Worker\nworker = Worker()\n"
        "worker.executor('soma')(lambda data: {'n': len(data)})\nworker.run_forever()\n"
    )
    environment = {**os.environ, "ORACULO_URL": server.url}
    script = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    try:
        result = run(server, {"execucoes": [{"executador": "soma"}]})
        assert result["execucoes"][0]["resultado"] == {"n": 0}
        script.terminate()
        assert script.wait(30) == 0
    finally:
        script.kill()


def test_a_short_lease_is_kept_alive_while_the_work_goes_on(server: Server, worker: Begin) -> None:
    worker("--lease-s", "1")
    result = run(server, collect("dorme", parametros={"s": 3.2}))["coletas"][0]
    assert (result["status"], result["tentativas"]) == ("concluida", 1)
    assert "lease expired" not in server.log()


def test_work_that_nobody_wants_any_more_is_stopped(server: Server, worker: Begin, tmp_path: Path) -> None:
    worker("--lease-s", "1")
    began = tmp_path / "began"
    with Client(server.url) as client:
        parameters = {"comecou": str(began), "pode": str(tmp_path / "never")}
        name = client.submit(collect("lento", parametros=parameters)).correlation_id
        eventually(began.exists)
        client.cancel(name)
    eventually(Path(f"{began}.parou").exists)
    eventually(lambda: held(server) == 0)
    assert run(server, collect("eco"))["status"] == "concluida"


def test_answers_survive_a_server_that_is_killed(server: Server, worker: Begin, tmp_path: Path) -> None:
    one = worker("--concurrency", "8")
    may = tmp_path / "may"
    with Client(server.url) as client:
        for number in range(6):
            parameters = {"comecou": str(tmp_path / f"began{number}"), "pode": str(may)}
            client.submit({"correlation_id": f"k{number}", **collect("espera", parametros=parameters)})
    for number in range(6):
        eventually((tmp_path / f"began{number}").exists)
    server.kill()
    may.touch()  # all six end while there is nobody to tell
    eventually(lambda: "cannot send answers" in one.log())
    server.start()
    with Client(server.url) as client:
        for number in range(6):
            result = client.result(f"k{number}", DEADLINE_S)
            assert result is not None
            assert (result["status"], result["coletas"][0]["tentativas"]) == ("concluida", 1)
            assert [one["evento"] for one in client.events(f"k{number}")].count("ticket_concluded") == 1


def test_a_worker_waits_for_its_server_and_outlives_many(server: Server, worker: Begin) -> None:
    one = worker()
    for _ in range(3):
        server.kill()
        server.start()
        assert run(server, collect("eco"))["status"] == "concluida"
    assert one.popen is not None and one.popen.poll() is None


def test_sigterm_finishes_what_was_begun(server: Server, worker: Begin, tmp_path: Path) -> None:
    one = worker("--concurrency", "1")
    began, may = tmp_path / "began", tmp_path / "may"
    with Client(server.url) as client:
        first = client.submit(collect("espera", parametros={"comecou": str(began), "pode": str(may)})).correlation_id
        eventually(began.exists)
        second = client.submit(collect("eco")).correlation_id
        one.send(signal.SIGTERM)
        eventually(lambda: "stopping" in one.log())
        may.touch()
        assert one.wait() == 0
        result = client.result(first, DEADLINE_S)
        assert result is not None and result["status"] == "concluida"
        worker()  # the second was not begun, or it was finished: either way one attempt is enough
        result = client.result(second, DEADLINE_S)
        assert result is not None and result["coletas"][0]["tentativas"] == 1


def test_sigint_twice_ends_at_once(server: Server, worker: Begin, tmp_path: Path) -> None:
    one = worker()
    began = tmp_path / "began"
    with Client(server.url) as client:
        client.submit(collect("espera", parametros={"comecou": str(began), "pode": str(tmp_path / "never")}))
    eventually(began.exists)
    one.send(signal.SIGINT)
    eventually(lambda: "stopping" in one.log())
    one.send(signal.SIGINT)
    assert one.wait() == 130


def test_work_that_does_not_end_is_given_back(server: Server, worker: Begin, tmp_path: Path) -> None:
    one = worker(PACIENCIA="2")
    began, may = tmp_path / "began", tmp_path / "may"
    with Client(server.url) as client:
        request = collect("espera", parametros={"comecou": str(began), "pode": str(may)}, timeout_s=60)
        name = client.submit(request).correlation_id
        eventually(began.exists)
        started = time.monotonic()
        assert one.stop() == 0
        assert time.monotonic() - started >= 2
        assert held(server) == 0
        may.touch()
        worker()
        result = client.result(name, DEADLINE_S)
        assert result is not None
        assert (result["status"], result["coletas"][0]["tentativas"]) == ("concluida", 1)


def test_a_worker_killed_at_work_loses_nothing(server: Server, worker: Begin, tmp_path: Path) -> None:
    one = worker("--lease-s", "1")
    began, may = tmp_path / "began", tmp_path / "may"
    with Client(server.url) as client:
        request = collect("espera", parametros={"comecou": str(began), "pode": str(may)}, timeout_s=60)
        name = client.submit(request).correlation_id
        eventually(began.exists)
        one.kill()
        may.touch()
        worker()
        result = client.result(name, DEADLINE_S)
        assert result is not None
        assert (result["status"], result["coletas"][0]["tentativas"]) == ("concluida", 1)


def test_one_slot_works_on_one_thing_at_a_time(server: Server, worker: Begin, tmp_path: Path) -> None:
    """Several queues may bring more than can be begun; what waits is kept alive, or given back."""
    worker("--concurrency", "1", "--lease-s", "1")
    may = tmp_path / "may"
    both = [
        {"fonte": fonte, "parametros": {"comecou": str(tmp_path / fonte), "pode": str(may)}}
        for fonte in ("lento", "espera")
    ]
    with Client(server.url) as client:
        name = client.submit({"coletas": [*both, {"fonte": "eco"}, {"fonte": "dorme", "parametros": {"s": 0}}]})
        eventually(lambda: (tmp_path / "lento").exists() or (tmp_path / "espera").exists())
        assert client.result(name.correlation_id, 2.5) is None
        assert not ((tmp_path / "lento").exists() and (tmp_path / "espera").exists())
        may.touch()
        result = client.result(name.correlation_id, DEADLINE_S)
    assert result is not None
    assert [one["status"] for one in result["coletas"]] == ["concluida"] * 4
