"""`oraculo dev`: the workers of a file are loaded anew when it changes; the server and its runs stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.processes import Cli, Process, environment
from oraculo.cli.dev import snapshot
from oraculo.client.client import Client
from waiting import DEADLINE_S

APP = """
from oraculo import Plan, Worker
from words import GREETING

worker = Worker()

@worker.collector("greet")
def greet(params):
    print("called")  # must not disturb the JSON lines
    return f"{GREETING} {params['name']}"

plan = Plan()
plan.output = plan.collect("greeting", "greet", {"name": "Ana"}).data
"""


class Dev(Process):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ["dev", "app.py", "--port", "0"], environment(folder))

    def event(self) -> dict[str, Any]:
        assert self.popen is not None
        line = self.popen.stdout.readline()
        assert line, self.log()[-2000:]
        event: dict[str, Any] = json.loads(line)
        return event


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Dev]:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "words.py").write_text("GREETING = 'Hello'\n")
    one = Dev(tmp_path)
    yield one
    one.kill()


def test_a_changed_file_is_loaded_a_broken_one_is_shown_and_runs_are_kept(dev: Dev) -> None:
    started = dev.start()
    assert started["file"] == "app.py" and started["store"].startswith("sqlite:")
    assert dev.event() == {"evento": "carregado", "filas": ["escavador_greet"]}
    request = {"collects": [{"source": "greet", "params": {"name": "Ana"}}]}
    with Client(started["url"]) as client:

        def greeting(name: str) -> Any:
            result = client.result(client.submit({**request, "correlation_id": name}).correlation_id, DEADLINE_S)
            assert result is not None
            return result["coletas"][0]["dados"]

        assert greeting("first") == "Hello Ana"

        words = dev.folder / "words.py"
        words.write_text("GREETING = 'Good evening\n")
        failed = dev.event()
        assert failed["evento"] == "falhou"
        assert "words.py" in failed["erro"] and "SyntaxError" in failed["erro"] and "importlib" not in failed["erro"]
        assert f'"message":"{failed["erro"].splitlines()[-1]}"' in dev.log(), "an error is shown line by line"
        waiting = client.submit({**request, "correlation_id": "second"})

        words.write_text("GREETING = 'Good evening'\n")
        assert dev.event()["evento"] == "carregado"
        second = client.result(waiting.correlation_id, DEADLINE_S)
        assert second is not None and second["coletas"][0]["dados"] == "Good evening Ana"
        assert client.get("first")["status"] == "concluida"
    assert dev.stop() == 0


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = Cli(tmp_path)("dev", "nothing.py")
    assert done.returncode == 2 and "nothing.py: there is no such Python file" in done.stderr


def test_what_is_watched(tmp_path: Path) -> None:
    for name in ("app.py", "deep/er/two.py", ".hidden/no.py", "env/lib/no.py", "node_modules/no.py", "no.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "env/pyvenv.cfg").touch()
    assert [str(Path(one).relative_to(tmp_path)) for one in sorted(snapshot(tmp_path / "app.py"))] == [
        "app.py",
        "deep/er/two.py",
    ]
