"""The page that says where everything is that the founding documents name: what it points at exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from cli.processes import environment
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.families import described
from oraculo.cli.main import app
from oraculo.settings.settings import VARIABLES
from oraculo.wire import names

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "REFERENCIA_ORQUESTRADOR.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def test_every_file_is_there() -> None:
    rows = [row for row in section("Files").splitlines() if row.startswith("| ") and "named there" not in row]
    assert len(rows) >= 22
    for row in rows:
        links = re.findall(r"\]\(([^)]+)\)", row)
        assert links, row
        for link in links:
            assert (ROOT / "docs" / link).resolve().is_file(), row


def test_every_setting_is_read() -> None:
    named = re.findall(r"`([A-Z][A-Z_]+[A-Z])`", section("Settings"))
    known = {variable.name for variable in VARIABLES}
    assert len(named) >= 20
    assert [name for name in named if name not in known] == []


def test_every_metric_is_exported() -> None:
    named = set(re.findall(r"`(orchestration_\w+)`", section("Metrics")))
    assert len(named) == 15
    assert named <= {one[0] for one in described(Metrics().registry)}


def test_every_topic_and_queue_is_ours() -> None:
    named = set(re.findall(r"^\| `([a-z._]+)`", section("Queues and topics"), re.MULTILINE))
    topics = {variable.default for variable in VARIABLES if variable.name.startswith("KAFKA_")}
    assert len(named) == 5
    assert named - topics == {names.RESULTS}


@pytest.mark.parametrize(
    "line", sorted({*re.findall(r"`(oraculo [^`]+)`", PAGE), *re.findall(r"`(oraculo [^`]+)`", REFERENCE)})
)
def test_every_command_is_one(line: str) -> None:
    command = typer.main.get_command(app)
    for word in shlex.split(line)[1:]:
        if word.startswith("-") or not isinstance(command, TyperGroup):
            break
        found = command.get_command(typer.Context(command), word)
        assert found is not None, line
        command = found
    options = {option for one in command.params for option in one.opts}
    for word in shlex.split(line)[1:]:
        assert not word.startswith("--") or word in options, line


def test_the_orchestrator_starts_as_printed_in_a_clone(tmp_path: Path) -> None:
    """`python -m src.main`, here with an option of `oraculo up`."""
    command = [sys.executable, "-m", "src.main", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            assert json.loads(started.stdout.readline())["url"].startswith("http://127.0.0.1:")
        finally:
            started.terminate()
        assert started.wait(60) == 0
