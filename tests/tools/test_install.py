"""`make services`: what it says, and what its exit status means."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tools.servers.install import RECIPES

import servers


def run(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.servers.install", *arguments],
        cwd=servers.ROOT,
        env={**os.environ, "PATH": path if path is not None else os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_server_has_a_recipe() -> None:
    assert RECIPES.keys() == servers.CLASSES.keys()


def test_where_nothing_can_be_installed_it_says_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    done = run("--json", path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert found.keys() == servers.CLASSES.keys()
    assert "version" in found["nats"]  # it is beside this Python
    assert "there is no apt-get here" in found["redis"]["missing"]
    assert found["redis"]["by_hand"] == "apt-get install redis-server"


def test_required_and_missing_is_a_failure(tmp_path: Path) -> None:
    done = run("--require", path=str(tmp_path))
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(servers.CLASSES)
    assert any(line.startswith("redis      missing: ") and "by hand: " in line for line in lines)
