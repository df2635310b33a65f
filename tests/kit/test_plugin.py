"""The pytest plugin in a pytest of its own, over the example of the documentation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "testing"
PLUGIN = "oraculo.testing.pytest_plugin"


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, *arguments]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, timeout=120)


def test_pytest_finds_the_plugin_by_itself(pytestconfig: pytest.Config) -> None:
    assert [one.value for one in entry_points(group="pytest11", name="oraculo")] == [PLUGIN]
    assert pytestconfig.pluginmanager.has_plugin("oraculo")


def test_the_example_holds_and_a_broken_one_fails_with_its_seed(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    whole = pytest_in(tmp_path, "--oraculo-seed", "7", "-rP")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert "oraculo_check: 1 seeds in" in whole.stdout

    shop = (tmp_path / "shop.py").read_text(encoding="utf-8")
    broken = shop.replace("bank.setdefault(ticket_id, params", "bank.__setitem__(str(len(bank)), params")
    assert broken != shop
    (tmp_path / "shop.py").write_text(broken, encoding="utf-8")
    failed = pytest_in(tmp_path, "-k", "twice", "--oraculo-seeds", "60")
    found = re.search(r"seed \d+ fails: AssertionError: charged twice", failed.stdout)
    assert failed.returncode == 1 and found is not None, failed.stdout


def test_the_plugin_imports_nothing_before_it_is_used() -> None:
    program = (
        "import sys, oraculo.testing.pytest_plugin as plugin; "
        "print([name for name in sys.modules if name.startswith(('oraculo.', 'apsw', 'pydantic'))])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['oraculo.testing', 'oraculo.testing.pytest_plugin']"
