"""The plain workers of examples/workers/rabbitmq with a real orchestrator on a real server, in any order of start."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pika
import pytest

from cli.processes import Server
from examples.plain_workers import npm
from servers import own
from waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "examples" / "workers" / "rabbitmq"
ORDERS, RESULTS = "escavador_youtube", "orquestrador_resultados"
AS_PRINTED = {
    "seed_publisher.py": "23f981698de1f36f4a484984b1854f7ef1bc3e8a8c7e32a3d6d49bd4bd12e504",
    "seed_consumer.py": "391865c48ba4c388b5f2aa6a8f7b2ea087b3ff64726ae2479ed8bd83f9cdfcfc",
}
MAP_THE_HOST = """
import os, socket
_getaddrinfo = socket.getaddrinfo
def getaddrinfo(host, port, *args, **kwargs):
    if host == "rabbitmq":
        host, port = "127.0.0.1", int(os.environ["RABBITMQ_PORT"])
    return _getaddrinfo(host, port, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
"""
Run = Callable[..., Path]


@pytest.fixture(scope="module", params=[pytest.param("rabbitmq", marks=pytest.mark.xdist_group("examples-rabbitmq"))])
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with own("rabbitmq", tmp_path_factory.mktemp("examples")) as server:
        yield server


@contextlib.contextmanager
def plain(url: str) -> Iterator[Any]:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield connection.channel()


@pytest.fixture
def broker(kept: Any) -> Any:
    """The server, without any of the queues."""
    with plain(kept.url) as channel:
        for queue in (ORDERS, RESULTS, "orquestrador_requisicoes"):
            channel.queue_delete(queue)
    return kept


def consumers(url: str, queue: str) -> int:
    with plain(url) as channel:
        try:
            return int(channel.queue_declare(queue, passive=True).method.consumer_count)
        except pika.exceptions.ChannelClosedByBroker:
            return 0


@pytest.fixture
def run(broker: Any, tmp_path: Path) -> Iterator[Run]:
    """Starts a program; gives the file that it writes to."""
    (tmp_path / "sitecustomize.py").write_text(MAP_THE_HOST)
    env = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTHONUNBUFFERED": "1",
        "RABBITMQ_PORT": str(broker.port),
        "AMQP_URL": broker.url,
    }
    with contextlib.ExitStack() as stack:

        def start(*command: str, cwd: Path = EXAMPLES) -> Path:
            said = tmp_path / f"{Path(command[-1]).name}.log"
            with open(said, "ab") as log:
                process = subprocess.Popen(command, cwd=cwd, env=env, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return said

        yield start


@pytest.fixture
def oraculo(broker: Any, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    with contextlib.ExitStack() as stack:

        def start(options: str = "") -> Server:
            server = Server(tmp_path, ORACULO_BROKER=broker.url + options, LOG_LEVEL="INFO")
            stack.callback(server.kill)
            server.start()
            return server

        yield start


def submit(server: Server) -> str:
    coletas = [{"fonte": "youtube", "parametros": {"canal": canal}} for canal in ("x", "y")]
    request = {"coletas": coletas, "timeout_s": 100}
    answer = httpx2.post(f"{server.url}/api/v1/orchestrations", json=request, timeout=30)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["correlation_id"])


def result(server: Server, correlation_id: str) -> dict[str, Any]:
    path = f"{server.url}/api/v1/orchestrations/{correlation_id}/result"
    answer = httpx2.get(path, params={"wait": "60"}, timeout=90)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


class TestAsPrinted:
    """The publisher and the consumer of the design documents, byte for byte."""

    @pytest.mark.parametrize("name", AS_PRINTED)
    def test_they_are_as_printed(self, name: str) -> None:
        assert hashlib.sha256((EXAMPLES / name).read_bytes()).hexdigest() == AS_PRINTED[name]

    def test_they_understand_each_other(self, run: Run) -> None:
        heard = run(sys.executable, "seed_consumer.py")
        run(sys.executable, "seed_publisher.py")
        eventually(lambda: "123e4567-e89b-12d3-a456-426614174000" in heard.read_text())

    def test_the_consumer_is_there_first(self, broker: Any, run: Run, oraculo: Callable[..., Server]) -> None:
        heard = run(sys.executable, "seed_consumer.py")
        eventually(lambda: consumers(broker.url, ORDERS))
        correlation_id = submit(oraculo())
        eventually(lambda: correlation_id in heard.read_text())

    def test_the_order_is_there_first(self, broker: Any, run: Run, oraculo: Callable[..., Server]) -> None:
        server = oraculo()
        correlation_id = submit(server)
        eventually(lambda: f"queue {ORDERS} does not exist yet" in server.log())
        heard = run(sys.executable, "seed_consumer.py")
        eventually(lambda: correlation_id in heard.read_text())


class TestWorkers:
    """They say which ticket and attempt they answer, so two collections of one source are told apart."""

    @pytest.fixture(params=["worker.py", "worker.mjs"])
    def worker(self, request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Callable[[], Path]:
        if request.param == "worker.py":
            return lambda: run(sys.executable, "worker.py")
        folder = installed(tmp_path / "node")
        return lambda: run("node", "worker.mjs", cwd=folder)

    def test_the_worker_is_there_first(
        self, broker: Any, worker: Callable[[], Path], oraculo: Callable[..., Server]
    ) -> None:
        worker()
        eventually(lambda: consumers(broker.url, ORDERS))
        self.check(oraculo())

    @pytest.mark.parametrize("options", ["", "?declare_after=0"])
    def test_the_order_is_there_first(
        self, worker: Callable[[], Path], oraculo: Callable[..., Server], options: str
    ) -> None:
        server = oraculo(options)
        correlation_id = submit(server)
        worker()
        self.check(server, correlation_id)

    def check(self, server: Server, correlation_id: str = "") -> None:
        document = result(server, correlation_id or submit(server))
        assert document["status"] == "concluida"
        dados = [coleta["dados"] for coleta in document["coletas"]]
        assert dados == [[{"titulo": "vídeo de x"}], [{"titulo": "vídeo de y"}]]


def installed(folder: Path) -> Path:
    folder.mkdir()
    for name in ("worker.mjs", "package.json", "package-lock.json"):
        shutil.copy(EXAMPLES / name, folder)
    npm(folder, "ci")
    return folder
