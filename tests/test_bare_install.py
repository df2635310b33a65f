"""The wheel with nothing but its own dependencies, in a fresh environment: a worker, a client, and no server."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cli.processes import Server

ROOT = Path(__file__).parents[1]
SERVER_ONLY = (
    "apsw",
    "fastapi",
    "google",
    "grpc",
    "jinja2",
    "prometheus_client",
    "pydantic",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
)
WORKER = """
from oraculo import Worker, WorkError

worker = Worker()

@worker.collector("dobro")
async def double(params: dict) -> int:
    return params["n"] * 2
"""
CLIENT = """
import sys
from oraculo import Client, NotFoundError

with Client(sys.argv[1]) as client:
    run = client.submit({"coletas": [{"fonte": "dobro", "parametros": {"n": 21}}]})
    print(client.result(run.correlation_id, wait=60)["coletas"][0]["dados"])
    try:
        client.get("nunca")
    except NotFoundError as error:
        print(error.status)
"""


def needed_by(name: str, seen: dict[str, Path]) -> dict[str, Path]:
    """Distributions that `name` needs without any extra → the folder that they are installed in."""
    for line in distribution(name).requires or ():
        wanted = Requirement(line)
        if wanted.name not in seen and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            seen[wanted.name] = Path(str(distribution(wanted.name).locate_file("")))
            needed_by(wanted.name, seen)
    return seen


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with the wheel, and with links to what a bare install brings along."""
    folder = tmp_path_factory.mktemp("bare")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    venv.create(folder / "env", with_pip=False)
    [site] = (folder / "env/lib").glob("python*/site-packages")
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        metadata = archive.read(next(one for one in archive.namelist() if one.endswith("METADATA"))).decode()
    direct = [
        Requirement(line).name
        for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M)
        if "extra ==" not in line
    ]
    seen: dict[str, Path] = {name: Path(str(distribution(name).locate_file(""))) for name in direct}
    for name in direct:
        needed_by(name, seen)
    for name, place in seen.items():
        tops = {file.parts[0] for file in distribution(name).files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(place / top)
    return str(folder / "env/bin/python")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    one.start()
    yield one
    one.kill()


def test_the_environment_has_no_package_of_the_server(bare: str) -> None:
    code = f"import importlib.util as u; print([one for one in {SERVER_ONLY!r} if u.find_spec(one)])"
    shown = subprocess.run([bare, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(("command", "extra"), [("ls", "cli"), ("up", "server"), ("doctor", "server")])
def test_a_command_that_needs_more_names_the_extra_in_one_line(bare: str, command: str, extra: str) -> None:
    shown = subprocess.run([bare, "-I", "-m", "oraculo", command], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == (
        f"oraculo: oraculo {command} needs an extra that is not installed: pip install 'oraculo[{extra}]'\n"
    )


def test_a_worker_and_a_client_of_the_bare_install_do_the_work(bare: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "trabalho.py").write_text(WORKER, encoding="utf-8")
    command = [bare, "-m", "oraculo", "worker", "trabalho:worker", "--url", server.url, "--name", "bare"]
    worker = subprocess.Popen(command, cwd=tmp_path)
    try:
        shown = subprocess.run([bare, "-I", "-c", CLIENT, server.url], capture_output=True, text=True, timeout=90)
        assert shown.stdout.split() == ["42", "404"], shown.stderr
        worker.terminate()
        assert worker.wait(30) == 0
    finally:
        worker.kill()


def test_a_worker_that_is_not_there_is_one_line(bare: str, tmp_path: Path) -> None:
    command = [bare, "-m", "oraculo", "worker", "nada:worker"]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (2, "oraculo: nada:worker: there is no module 'nada'\n")
