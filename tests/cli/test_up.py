"""`oraculo up`: ready, refused, stopped."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from cli.processes import Cli, Server
from oraculo.client.client import Client
from waiting import DEADLINE_S, eventually


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def begin(*arguments: str, **env: str) -> Server:
        one = Server(tmp_path, *arguments, **env)
        started.append(one)
        one.start()
        return one

    yield begin
    for one in started:
        one.kill()


def test_says_where_it_listens_when_it_is_ready(start: Callable[..., Server]) -> None:
    one = start()
    assert one.url.startswith("http://127.0.0.1:") and not one.url.endswith(":0")
    assert httpx2.get(f"{one.url}/ready", trust_env=False).status_code == 200
    assert one.url in one.log()


def test_stops_on_sigterm_although_somebody_waits(start: Callable[..., Server]) -> None:
    one = start()
    with Client(one.url) as client:
        name = client.submit({"coletas": [{"fonte": "ninguem"}]}).correlation_id
        stream = client.stream(name)
        assert next(stream)["evento"] == "orchestration_started"
        assert one.stop() == 0  # within the patience of the test
    assert os.path.exists(one.folder / "oraculo.db")


def test_work_in_the_same_process_is_finished_before_it_ends(start: Callable[..., Server], tmp_path: Path) -> None:
    one = start("--worker", "trabalho:worker")
    began, may = tmp_path / "began", tmp_path / "may"
    with Client(one.url) as client:
        client.submit(
            {
                "correlation_id": "x",
                "coletas": [{"fonte": "espera", "parametros": {"comecou": str(began), "pode": str(may)}}],
            }
        )
    eventually(began.exists)
    one.send(signal.SIGTERM)
    eventually(lambda: "stopping" in one.log())
    may.touch()
    assert one.wait() == 0
    one.start()
    with Client(one.url) as client:
        result = client.result("x", DEADLINE_S)
    assert result is not None
    assert result["status"] == "concluida"
    assert result["coletas"][0]["tentativas"] == 1


def test_a_second_signal_ends_it_at_once(start: Callable[..., Server], tmp_path: Path) -> None:
    one = start("--worker", "trabalho:worker")
    began = tmp_path / "began"
    with Client(one.url) as client:
        parameters = {"comecou": str(began), "pode": str(tmp_path / "never")}
        client.submit({"coletas": [{"fonte": "espera", "parametros": parameters}]})
    eventually(began.exists)
    one.send(signal.SIGINT)
    eventually(lambda: "stopping" in one.log())
    one.send(signal.SIGINT)
    assert one.wait() == 130


def test_a_function_that_never_returns_does_not_keep_it_alive(start: Callable[..., Server], tmp_path: Path) -> None:
    one = start("--worker", "trabalho:worker")
    began = tmp_path / "began"
    with Client(one.url) as client:
        parameters = {"comecou": str(began), "pode": str(tmp_path / "never")}
        client.submit({"coletas": [{"fonte": "espera", "parametros": parameters}]})
    eventually(began.exists)
    assert one.stop() == 0


def test_port_in_use_is_one_line_and_exit_1(alone: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = alone("up", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and str(port) in done.stderr and "in use" in done.stderr
    assert not (alone.folder / "oraculo.db").exists()


@pytest.mark.parametrize(
    ("arguments", "env", "says"),
    [
        (["--host", "0.0.0.0"], {}, "ORACULO_API_KEY"),
        ([], {"ORACULO_PORT": "abc"}, "ORACULO_PORT='abc'"),
        ([], {"ORACULO_STORE": "mysql://x"}, "ORACULO_STORE"),
        ([], {"ORACULO_HOST": "no such host"}, "ORACULO_HOST"),
        (["--worker", "nada:worker"], {}, "no module 'nada'"),
        (["--worker", "json:worker"], {}, "not a Worker"),
        (["--worker", "oraculo.worker.worker:Worker"], {}, "not a Worker"),
        (["--port", "70000"], {}, "65535"),
    ],
)
def test_refuses_to_start_with_a_clear_word(alone: Cli, arguments: list[str], env: dict[str, str], says: str) -> None:
    done = alone("up", *arguments, **env)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_a_database_that_another_one_uses_is_exit_5(start: Callable[..., Server]) -> None:
    one = start()
    done = Cli(one.folder)("up", "--port", "0")
    assert done.returncode == 5
    assert "another Oráculo" in done.stderr and done.stderr.count("\n") == 1


def test_a_database_that_cannot_be_opened_is_exit_5(alone: Cli) -> None:
    (alone.folder / "oraculo.db").write_bytes(b"this is not a database, whatever its name may be" * 100)
    done = alone("up", "--port", "0")
    assert done.returncode == 5
    assert "oraculo.db" in done.stderr and "Traceback" not in done.stderr
