"""README promises the reader's own result within a minute after the install, with three words to learn before it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tools.release import build, first_result

CONCEPTS = 3


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The commands of a fresh environment with the wheel, which finds what it needs in the environment of the tests."""
    wheel = next(path for path in build.packages(tmp_path / "dist") if path.suffix == ".whl")
    environment, uv = tmp_path / "environment", build.BIN / "uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    python = str(environment / "bin/python")
    subprocess.run([uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel], check=True)
    [site] = (environment / "lib").glob("python*/site-packages")
    (site / "tests.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return environment / "bin"


@pytest.mark.parametrize("readme", ["README.md", "README.pt-BR.md"])
def test_the_first_own_result_is_there_within_the_promised_minute(installed: Path, tmp_path: Path, readme: str) -> None:
    hour = first_result.before_the_result((build.ROOT / readme).read_text(encoding="utf-8"))
    where = subprocess.run(
        [installed / "python", "-c", "import oraculo; print(oraculo.__file__)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(installed.parent)), "this is the wheel, and not the clone"
    (tmp_path / "reader").mkdir()
    assert first_result.follow(hour, installed, tmp_path / "reader").result < first_result.PROMISED_S


@pytest.mark.parametrize("readme", ["README.md", "README.pt-BR.md"])
def test_three_words_are_explained_before_the_first_result(readme: str) -> None:
    hour = first_result.before_the_result((build.ROOT / readme).read_text(encoding="utf-8"))
    below_the_title = hour.prose.partition("\n## ")[2]
    assert len(set(re.findall(r"\*\*(.+?)\*\*", below_the_title))) == CONCEPTS
    imports = [node for node in ast.walk(ast.parse(hour.program)) if isinstance(node, ast.ImportFrom)]
    assert [name.name for node in imports for name in node.names] == ["Plan", "Worker"]
    assert len(hour.commands) == 2


def test_what_readme_does_not_show_is_no_result(installed: Path, tmp_path: Path) -> None:
    hour = first_result.before_the_result((build.ROOT / "README.md").read_text(encoding="utf-8"))
    other = first_result.FirstHour(hour.prose, hour.program.replace("Hello", "Bye"), hour.commands, hour.shown)
    (tmp_path / "reader").mkdir()
    with pytest.raises(ValueError, match="README shows"):
        first_result.follow(other, installed, tmp_path / "reader")
