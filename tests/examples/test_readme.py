"""README from top to bottom, as a newcomer pastes it: in a clean folder, the server in a terminal of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from tools.servers.server import free_port

from cli.processes import environment
from waiting import DEADLINE_S, eventually

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NOT_RUN = {  # what begins like this → what runs it instead, or why nothing does
    "oraculo prove": "tests/simulation/test_prove.py",
    "pip install": "make test-release, in empty environments",
}
NEEDS_SERVERS = (
    "export ORACULO_BROKER=",
    "export ORACULO_STORE=",
)  # blocks that tests/acceptance has


@dataclass
class Block:
    """The commands of one block, and what README says that they print."""

    commands: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


def read_block(text: str) -> Block:
    found, open_command = Block(), ""
    for line in text.splitlines():
        if not open_command and not line.startswith("$ "):
            found.printed.append(line)
            continue
        open_command = f"{open_command}\n{line}" if open_command else line[2:]
        if open_command.endswith("\\") or not _is_whole(open_command):
            continue
        found.commands.append(open_command)
        open_command = ""
    assert not open_command, open_command
    return found


def bare(command: str) -> str:
    """The command without what README says about it."""
    return re.sub(r"\s+# .*$", "", command)


def commands_of(readme: str) -> set[str]:
    blocks = [read_block(content) for language, content in BLOCK.findall(readme) if language == "console"]
    return {bare(command) for block in blocks for command in block.commands}


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


class Newcomer:
    """A folder, a port, a server that is started anew whenever README says so, and workers beside it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack, self.port = folder, stack, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = environment(folder, PATH=path, ORACULO_URL=self.url, ORACULO_PORT=str(self.port))
        del self.env["ORACULO_STORE"]  # as README has it: where one stands
        self.server: subprocess.Popen[bytes] | None = None

    def in_background(self, command: str) -> subprocess.Popen[bytes]:
        log = self.stack.enter_context((self.folder / "background.log").open("ab"))
        words = shlex.split(command.rstrip(" &"), comments=True)
        process = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=log, stderr=log)
        self.stack.callback(stop, process)
        return process

    def start_server(self, command: str) -> None:
        if self.server is not None:
            stop(self.server)
        self.server = self.in_background(command)
        eventually(self.answers)

    def answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/ready", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False

    def types(self, commands: list[str]) -> str:
        script = "\n".join(["set -eo pipefail", *commands]).replace("localhost:8000", f"127.0.0.1:{self.port}")
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout + done.stderr


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    process.wait(DEADLINE_S)


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with ExitStack() as stack:
        yield Newcomer(tmp_path, stack)


def as_pattern(line: str) -> str:
    """What README prints, with … for whatever is there."""
    return ".*".join(re.escape(part.strip()) for part in line.split("…"))


@pytest.mark.parametrize("readme", ["README.md", "README.pt-BR.md"])
def test_every_command_of_readme_runs_as_written(newcomer: Newcomer, readme: str) -> None:
    """Blocks of the Portuguese one that are the same in the English one are run once, for both."""
    ran, text = 0, (ROOT / readme).read_text(encoding="utf-8")
    known = set() if readme == "README.md" else commands_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "`app.py`" in text and "`plan.yaml`" in text
    for language, content in BLOCK.findall(text):
        if language in ("python", "yaml"):
            (newcomer.folder / ("app.py" if language == "python" else "plan.yaml")).write_text(content)
        if language != "console" or any(f"$ {one}" in content for one in NEEDS_SERVERS):
            continue
        block, typed = read_block(content), []
        if newcomer.server is not None and {bare(command) for command in block.commands} <= known:
            continue
        for command in block.commands:
            if command.startswith(tuple(NOT_RUN)):
                continue
            if command.startswith(("oraculo up", "oraculo dev")):
                newcomer.start_server(command)
            elif command.split("#")[0].rstrip().endswith("&"):
                newcomer.in_background(command)
            else:
                typed.append(command)
        shown = newcomer.types(typed) if typed else ""
        ran += len(typed)
        for line in block.printed:
            assert re.search(as_pattern(line), shown), (line, shown)
        if any("--watch" in command for command in typed):
            assert "ended concluida" in shown, shown
    assert ran >= (8 if readme == "README.md" else 4), "README has commands that this test does not see"
