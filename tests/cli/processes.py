"""Real `oraculo` processes for tests: a server that says when it is ready, and commands that are run to their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from forked import FORKS, Forked, run
from waiting import DEADLINE_S

# What the test servers and workers do. Files named by a parameter are how work and test wait for each other.
WORK = '''
import asyncio, os, time
from pathlib import Path
from oraculo import Worker, WorkError

worker = Worker(patience=float(os.environ.get("PACIENCIA", "20")))


def until(path):
    while not Path(path).exists():
        time.sleep(0.02)


@worker.escavador("eco")
async def eco(parametros):
    return parametros


@worker.escavador("lento")
async def lento(parametros, ticket_id):
    """Says that it began, and goes on until it may end."""
    try:
        Path(parametros["comecou"]).write_text(ticket_id)
        while not Path(parametros["pode"]).exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        Path(parametros["comecou"] + ".parou").write_text(ticket_id)
        raise
    return "fim"


@worker.escavador("dorme")
def dorme(parametros):
    time.sleep(parametros["s"])
    return os.getpid()


@worker.escavador("espera")
def espera(parametros):
    Path(parametros["comecou"]).touch()
    until(parametros["pode"])
    return "fim"


@worker.escavador("falha")
def falha(parametros, tentativa):
    if tentativa < parametros.get("ok_na", 1000):
        raise WorkError("não foi", codigo="f1", definitivo=parametros.get("definitivo", False))
    return tentativa


@worker.escavador("quebra")
def quebra():
    raise RuntimeError("quebrou")


@worker.escavador("estranho")
def estranho():
    return object()


@worker.escavador("enorme")
def enorme():
    return "x" * 2_000_000


@worker.executador("soma")
def soma(dados):
    return {"soma": len(dados)}
'''


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of ours from outside, and a store in `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ORACULO_", "MONGODB_", "LC_"))}
    ours = {
        "ORACULO_STORE": f"sqlite:///{folder / 'oraculo.db'}",
        "ORACULO_RETRY_BASE_S": "0.05",
        "ORACULO_RETRY_CAP_S": "0.1",
        "LOG_LEVEL": "WARNING",
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "TERM": "xterm",
    }
    return {**kept, **ours, **more}


class Process:
    """One `oraculo …` that goes on running."""

    def __init__(self, folder: Path, arguments: list[str], env: dict[str, str]) -> None:
        self.folder, self.arguments, self.env = folder, arguments, env
        self.popen: Forked | None = None

    def start(self) -> dict[str, Any]:
        """Started and ready; its first line of JSON."""
        self.popen = Forked([*self.arguments, "--json"], self.folder, self.env, self.folder / "stderr.log")
        line = self.popen.stdout.readline()
        assert line, f"it did not start: {self.log()[-2000:]}"
        document: dict[str, Any] = json.loads(line)
        return document

    def log(self) -> str:
        return (self.folder / "stderr.log").read_text()

    def send(self, number: signal.Signals) -> None:
        assert self.popen is not None
        self.popen.send_signal(number)

    def wait(self, timeout: float = DEADLINE_S) -> int:
        assert self.popen is not None
        code = self.popen.wait(timeout)
        self.popen.stdout.close()
        return code

    def kill(self) -> None:
        if self.popen is not None and self.popen.poll() is None:
            self.send(signal.SIGKILL)
            self.wait()

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.wait()


class Server(Process):
    def __init__(self, folder: Path, *arguments: str, port: int = 0, **env: str) -> None:
        (folder / "trabalho.py").write_text(WORK)
        super().__init__(folder, ["up", "--port", str(port), *arguments], environment(folder, **env))
        self.port = port
        self.url = ""

    def start(self) -> dict[str, Any]:
        document = super().start()
        self.url = document["url"]
        return document


class Cli:
    """Runs commands to their end, against one server."""

    def __init__(self, folder: Path, url: str = "http://127.0.0.1:1") -> None:
        self.folder, self.url = folder, url

    def __call__(self, *arguments: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """A process of its own, forked from one that has everything imported already: ten times as fast as `fresh`."""
        folder = Path(mkdtemp(dir=self.folder.parent))
        (folder / "in").write_text(input)
        files = [f"{folder}/{name}" for name in ("in", "out", "err")]
        known = environment(self.folder, **{"ORACULO_URL": self.url, **env})
        process = FORKS.Process(target=run, args=(arguments, self.folder, known, files))
        process.start()
        process.join(DEADLINE_S)
        assert process.exitcode is not None, "it did not end"
        code, out, err = process.exitcode, (folder / "out").read_text(), (folder / "err").read_text()
        return subprocess.CompletedProcess(arguments, code, out, err)

    def fresh(self, *arguments: str, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """The same with an interpreter of its own."""
        return subprocess.run(
            [sys.executable, "-m", "oraculo", *arguments],
            cwd=self.folder,
            env=environment(self.folder, **{"ORACULO_URL": self.url, **env}),
            input=input,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def json(self, *arguments: str, code: int = 0, input: str = "", **env: str) -> Any:
        done = self(*arguments, "--json", input=input, **env)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[0] if len(lines) == 1 else lines

    def submit(self, request: dict[str, Any], *arguments: str, code: int = 0) -> Any:
        return self.json("submit", "-", *arguments, input=json.dumps(request), code=code)
