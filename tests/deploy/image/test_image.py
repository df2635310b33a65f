"""The image, built and run here: read-only, as uid 1000, draining when it is stopped, keeping what it was told."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.image.containers import Container
from tools.image.storage import run
from tools.servers.server import free_port

from databases import database
from deploy.image.conftest import LABELS, PLANTED, Images
from oraculo import __version__
from oraculo.client.client import Client
from oraculo.client.results import Submitted
from oraculo.errors import OraculoError
from servers import redis_database

KEY = "chave-de-teste-0123456789"
DRAIN_S = 30.0
WORK = """
import time
from pathlib import Path
from oraculo import Worker

worker = Worker()


@worker.escavador("eco")
async def eco(parametros):
    return parametros


@worker.escavador("demora")
def demora(parametros):
    Path("/data/comecou").touch()
    time.sleep(parametros["s"])
    return "fim"
"""
pytestmark = [pytest.mark.timeout(1200), pytest.mark.xdist_group("image")]


def eventually(check: Callable[[], Any], seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while True:
        try:
            if found := check():
                return found
        except OraculoError:
            pass
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A volume as an operator would make it."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "trabalho.py").write_text(WORK)
    for path in (folder, folder / "trabalho.py"):
        path.chmod(0o700)
        os.chown(path, 1000, 1000)
    return folder


def settings(port: int, **more: str) -> dict[str, str]:
    return {"ORACULO_HOST": "127.0.0.1", "ORACULO_PORT": str(port), "ORACULO_API_KEY": KEY, **more}


@pytest.fixture
def client_of() -> Iterator[Callable[[int], Client]]:
    made: list[Client] = []

    def make(port: int) -> Client:
        made.append(Client(f"http://127.0.0.1:{port}", KEY))
        eventually(made[-1].ready)
        return made[-1]

    yield make
    for one in made:
        one.close()


def ended(client: Client, one: Submitted) -> str:
    found = client.result(one.correlation_id, wait=60)
    return "open" if found is None else found["status"]


def configuration(image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(["buildah", "inspect", "--type", "image", image]))
    return found


class TestConfiguration:
    def test_what_a_container_gets(self, images: Images) -> None:
        docker = configuration(images.oraculo)["Docker"]["config"]
        assert docker["User"] == "1000:1000"
        assert docker["Entrypoint"] == ["/opt/oraculo/bin/oraculo"]
        assert docker["Cmd"] == ["up"]
        assert docker["WorkingDir"] == "/data"
        assert list(docker["Volumes"]) == ["/data"]
        assert sorted(docker["ExposedPorts"]) == ["8000/tcp", "9090/tcp"]
        assert docker["StopSignal"] == "SIGTERM"
        assert docker["Healthcheck"]["Test"] == ["CMD", "/opt/oraculo/bin/python", "/opt/oraculo/healthcheck.py"]
        assert "ORACULO_HOST=0.0.0.0" in docker["Env"]

    def test_labels(self, images: Images) -> None:
        labels = configuration(images.oraculo)["Docker"]["config"]["Labels"]
        named = {name: labels[f"org.opencontainers.image.{name.lower()}"] for name in LABELS}
        assert named == LABELS
        assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"

    def test_a_worker_has_no_health_check_and_no_port(self, images: Images) -> None:
        docker = configuration(images.worker)["Docker"]["config"]
        assert docker["User"] == "1000:1000"
        assert docker.get("Healthcheck") is None
        assert not docker.get("ExposedPorts")
        assert docker["Cmd"] == ["worker", "oraculo.collectors.all:worker"]

    def test_packages(self, images: Images) -> None:
        listing = "import importlib.metadata as m; print(*sorted(d.name.lower() for d in m.distributions()))"
        found = {}
        for name, image in (("oraculo", images.oraculo), ("worker", images.worker)):
            done = Container(image, "-c", listing, entrypoint="python").once()
            found[name] = set(done.stdout.split())
        assert {"celery", "temporalio", "psycopg", "pymongo", "aiokafka", "opentelemetry-sdk"} <= found["oraculo"]
        assert {"pika", "aiokafka", "nats-py", "hiredis", "fpdf2"} <= found["worker"]
        assert not found["worker"] & {"celery", "temporalio", "psycopg", "pymongo", "opentelemetry-sdk"}
        assert not found["oraculo"] & {"pip", "setuptools", "pytest", "hatchling", "uv"}


class TestSecrets:
    def test_no_planted_secret_is_in_a_layer_or_in_the_configuration(self, images: Images, tmp_path: Path) -> None:
        for number, image in enumerate((images.oraculo, images.worker)):
            where = tmp_path / str(number)
            run(["podman", "save", "--format", "docker-dir", "--output", str(where), image])
            unpacked = where / "unpacked"
            unpacked.mkdir()
            layers = 0
            for blob in sorted(where.iterdir()):
                if blob.is_file():
                    assert PLANTED.encode() not in blob.read_bytes()
                    if blob.stat().st_size and _is_archive(blob):
                        layers += 1
                        run(["tar", "--extract", "--file", str(blob), "--directory", str(unpacked)])
            assert layers >= 2
            done = run(["grep", "-rlF", PLANTED, str(unpacked), "--include=*", "-s"], ok=(0, 1, 2))
            assert done == ""
            assert not (unpacked / "run/ca.pem").exists()
            assert not (unpacked / "etc/pip.conf").exists()

    def test_what_is_not_asked_for_is_not_in_it(self, images: Images) -> None:
        script = (
            "import pathlib, oraculo; home = pathlib.Path(oraculo.__file__).parent;"
            "print(*(p for p in home.rglob('*') if p.name in ('.env', 'local.db')), pathlib.Path('/src').exists())"
        )
        assert Container(images.oraculo, "-c", script, entrypoint="python").once().stdout.split() == ["False"]


class TestAlone:
    """`oraculo up` on SQLite with a worker inside."""

    def test_it_works_drains_and_keeps_its_data(
        self, images: Images, data: Path, client_of: Callable[[int], Client]
    ) -> None:
        port = free_port()
        command = ("up", "--worker", "trabalho:worker")
        with Container(images.oraculo, *command, env=settings(port), data=data) as one:
            client = client_of(port)
            assert one.execute("/opt/oraculo/bin/python", "/opt/oraculo/healthcheck.py").returncode == 0
            assert one.execute("id", "-u").stdout.strip() == "1000"
            assert one.execute("touch", "/opt/oraculo/x").returncode != 0, "the root is read-only"
            assert one.execute("touch", "/tmp/x").returncode == 0
            owned = one.execute("stat", "--format=%u:%g", "/data", "/reports").stdout.split()
            assert owned == ["1000:1000", "1000:1000"], "a volume that is made there is the user's"
            quick = client.submit({"coletas": [{"fonte": "eco", "parametros": {"a": 1}}]})
            assert ended(client, quick) == "concluida"
            slow = client.submit({"coletas": [{"fonte": "demora", "parametros": {"s": 3}}]})
            eventually((data / "comecou").exists)
            took = one.stop(within=40)
            assert took < DRAIN_S
            assert one.exit_code() == 0, one.logs()
        with Container(images.oraculo, *command, env=settings(port), data=data) as again:
            client = client_of(port)
            assert ended(client, quick) == "concluida"
            assert ended(client, slow) == "concluida"
            assert again.stop(within=40) < DRAIN_S

    def test_without_a_key_it_says_so_and_ends(self, images: Images) -> None:
        done = Container(images.oraculo).once()
        assert done.returncode == 2
        assert "without ORACULO_API_KEY only loopback" in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_the_health_check_fails_when_nothing_answers(self, images: Images) -> None:
        env = {"ORACULO_PORT": str(free_port())}
        done = Container(images.oraculo, "/opt/oraculo/healthcheck.py", entrypoint="python", env=env).once()
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1


class TestRoles:
    def test_version_and_doctor(self, images: Images) -> None:
        assert Container(images.oraculo, "version").once().stdout.strip() == f"oraculo {__version__}"
        checks = json.loads(Container(images.oraculo, "doctor", "--json").once().stdout)["checks"]
        assert {"settings", "store"} <= {check["name"].split()[0] for check in checks}

    def test_migrate_and_topics_end_with_a_status(self, images: Images, data: Path) -> None:
        done = Container(images.oraculo, "migrate", "--json", data=data).once()
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["up_to_date"] is True
        assert (data / "oraculo.db").stat().st_uid == 1000
        done = Container(images.oraculo, "topics", "check").once()
        assert done.returncode == 2
        assert "there is no Kafka" in done.stderr

    async def test_a_celery_fleet_with_a_worker_of_the_small_image(
        self, images: Images, client_of: Callable[[int], Client], data: Path
    ) -> None:
        port = free_port()
        env = settings(port, ORACULO_ENGINE="celery", ORACULO_STORE=await database(), ORACULO_BROKER=redis_database())
        celery = ("-A", "oraculo.engines.celery")
        with (
            Container(images.oraculo, "up", env=env) as up,
            Container(images.oraculo, *celery, "worker", "-c", "1", env=env, entrypoint="celery") as tasks,
            Container(images.oraculo, *celery, "beat", "-s", "/tmp/beat", env=env, entrypoint="celery") as beat,
            Container(images.worker, "worker", "trabalho:worker", env=env, data=data) as worker,
        ):
            client = client_of(port)
            accepted = client.submit({"coletas": [{"fonte": "eco", "parametros": {"b": 2}}]})
            assert ended(client, accepted) == "concluida"
            for container in (worker, beat, tasks, up):
                assert container.running(), container.logs()
                assert container.stop(within=40) < DRAIN_S
                assert container.exit_code() == 0, container.logs()


def _is_archive(path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.read(262)
    return head[257:262] == b"ustar" or head[:2] == b"\x1f\x8b"
