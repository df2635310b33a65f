"""Runs of pytest that use servers: one of a kind for all workers, and none that outlives the run, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tools.servers.server import listens

import servers
from waiting import eventually

HEADER = """
    import os, signal, time
    from pathlib import Path
    import pytest
    import servers

    HERE = Path(__file__).parent

    def say(name, text):
        with open(HERE / name, "a") as file:
            file.write(f"{text}\\n")
"""
GHOST = """
    import os
    import tools.servers.report
    from tools.servers.server import Server

    class Ghost(Server):
        name = "ghost"

        @classmethod
        def missing(cls):
            return os.environ.get("GHOST_MISSING") or None

        @classmethod
        def version(cls):
            return "1.2.3"

        def command(self):
            return ["sh", "-c", "echo boo; exit 1"]

    tools.servers.report.CLASSES["ghost"] = "ghost:Ghost"
"""


def _hear_interrupts() -> None:
    """A run in the background of a shell is started deaf to SIGINT, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Run:
    """One pytest command on a file of its own, with the conftest of this project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, tests: str, *arguments: str, **env: str) -> subprocess.Popen[str]:
        (self.folder / "test_it.py").write_text(textwrap.dedent(HEADER) + textwrap.dedent(tests))
        (self.folder / "ghost.py").write_text(textwrap.dedent(GHOST))
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        (self.folder / "tmp").mkdir()
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "conftest", "-p", "ghost", "-p", "xdist", *arguments],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": f"{servers.ROOT / 'tests'}:{servers.ROOT}:{self.folder}",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "TMPDIR": str(self.folder / "tmp"),
                **env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_hear_interrupts,
            start_new_session=True,
        )

    def __call__(self, tests: str, *arguments: str, **env: str) -> str:
        with self.start(tests, *arguments, **env) as process:
            return process.communicate(timeout=60)[0]

    def await_ports(self, process: subprocess.Popen[str], count: int) -> None:
        """Until that many servers run; a run that ends before says why."""
        eventually(lambda: len(self.said("ports")) == count or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]

    def said(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    def assert_nothing_left(self, ports: list[str]) -> None:
        assert ports
        eventually(lambda: not any(listens(int(port)) for port in ports))
        eventually(lambda: not list((self.folder / "tmp").glob("oraculo-servers-*")))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    servers.use("nats")
    return Run(tmp_path)


SHARING = """
    @pytest.mark.parametrize("n", range(6))
    def test_it(n, tmp_path):
        say("ports", servers.shared("nats").rpartition(":")[2])
        if n == 3:
            with servers.own("nats", tmp_path) as server:
                server.kill()
                server.start()
                say("own", server.port)
            server = servers.own("nats", tmp_path)
            server.start()  # and forgotten
            say("own", server.port)
            assert False, "this test fails"
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_one_server_for_the_whole_run_and_none_after_it(run: Run, workers: str) -> None:
    output = run(SHARING, "-n", workers)
    assert "1 failed, 5 passed" in output
    assert len(run.said("ports")) == 6 and len(set(run.said("ports"))) == 1
    run.assert_nothing_left(run.said("ports") + run.said("own"))
    (line,) = [line.split() for line in output.splitlines() if line.startswith("nats")]
    assert line == ["nats", servers.class_of("nats").version(), "1", "3", "6"]


WAITING = """
    def test_it(tmp_path):
        own = servers.own("nats", tmp_path).start()
        say("ports", servers.shared("nats").rpartition(":")[2])
        say("ports", own.port)
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.02)
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_interrupted_run_leaves_nothing(run: Run, workers: str) -> None:
    with run.start(WAITING, "-n", workers) as process:
        run.await_ports(process, 2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=60)
    run.assert_nothing_left(run.said("ports"))


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_killed_run_leaves_nothing(run: Run, workers: str) -> None:
    with run.start(WAITING, "-n", workers) as process:
        run.await_ports(process, 2)
        process.kill()
        process.communicate(timeout=60)
    run.assert_nothing_left(run.said("ports"))


def test_a_worker_that_dies_leaves_the_shared_server_to_the_others(run: Run) -> None:
    tests = """
        def test_a_dies():
            say("ports", servers.shared("nats").rpartition(":")[2])
            os.kill(os.getpid(), signal.SIGKILL)

        @pytest.mark.parametrize("n", range(3))
        def test_others(n):
            say("ports", servers.shared("nats").rpartition(":")[2])
    """
    output = run(tests, "-n", "1")
    assert "1 failed, 3 passed" in output
    assert len(run.said("ports")) == 4 and len(set(run.said("ports"))) == 1
    run.assert_nothing_left(run.said("ports"))


ASKING = """
    @pytest.mark.parametrize("n", range(2))
    def test_shared(n):
        servers.shared("ghost")

    def test_own(tmp_path):
        servers.own("ghost", tmp_path)
"""


@pytest.mark.parametrize("required", ["", "redis,nats"])
def test_a_server_that_is_not_installed_skips_aloud(run: Run, required: str) -> None:
    output = run(ASKING, "-n", "2", GHOST_MISSING="no ghosts here", ORACULO_REQUIRE_SERVICES=required)
    assert "3 skipped" in output
    assert "SKIPPED" in output and "ghost is not installed: no ghosts here" in output
    assert "ghost      not installed: no ghosts here (3 tests need it)" in output


@pytest.mark.parametrize("required", ["1", "redis,ghost"])
def test_a_server_that_is_required_and_not_installed_fails(run: Run, required: str) -> None:
    output = run(ASKING, GHOST_MISSING="no ghosts here", ORACULO_REQUIRE_SERVICES=required)
    assert "3 failed" in output
    assert "ghost is not installed: no ghosts here" in output


def test_a_server_that_does_not_start_is_tried_once_and_says_why(run: Run) -> None:
    tests = """
        @pytest.mark.parametrize("n", range(3))
        def test_it(n):
            servers.shared("ghost")
    """
    output = run(tests, "-n", "2")
    assert "3 failed" in output
    assert "ServerFailedError: ghost did not start: boo" in output
    (line,) = [line.split() for line in output.splitlines() if line.startswith("ghost")]
    assert line == ["ghost", "1.2.3", "1", "0", "3"]


def test_a_run_without_servers_says_nothing_of_them(run: Run) -> None:
    output = run("def test_it(): pass")
    assert "1 passed" in output and "servers exercised" not in output
    assert list((run.folder / "tmp").iterdir()) == []


def test_tests_of_a_group_run_in_one_worker(run: Run) -> None:
    tests = """
        @pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("one", "two")])
        def name(request):
            return request.param

        @pytest.mark.parametrize("n", range(6))
        def test_it(name, n):
            say(name, os.getpid())
            time.sleep(0.02)
    """
    assert "12 passed" in run(tests, "-n", "2", "--dist", "loadgroup")
    for name in ("one", "two"):
        assert len(run.said(name)) == 6 and len(set(run.said(name))) == 1
