"""What stands between a tree and the tag of its version is named, one line each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tools.release.ready import ROOT, faults

FILES = ("src/oraculo/__init__.py", "helm-charts/orchestrator-dynamic/Chart.yaml", "docs/upgrading.md")
CHANGES = (
    "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-20\n\n### Added\n- A.\n\n## [0.1.0] - 2026-11-15\n- B.\n"
)


def git(tree: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(tree), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository in which 0.2.0 can be tagged."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / FILES[0]).write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    shutil.copytree(ROOT / "tests/upgrade/v0_1", tmp_path / "tests/upgrade/v0_1")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(tree: Path) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "one more")


def test_a_tree_that_is_ready_may_be_tagged_and_stays_ready(tree: Path) -> None:
    assert faults(tree) == []
    git(tree, "tag", "v0.2.0")
    assert faults(tree) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (FILES[1], "0.2.0", "0.1.9", "version is 0.1.9, not 0.2.0"),
        (FILES[2], "## From 0.1", "## From there", "there is no part 'From 0.1'"),
        (
            "CHANGELOG.md",
            "## [Unreleased]\n",
            "## [Unreleased]\n\n### Fixed\n- C.\n- D.\n",
            "[Unreleased] has 2 entries",
        ),
        ("CHANGELOG.md", "[0.2.0] - 2026-11-20", "[0.3.0] - 2026-11-20", "there is no [0.2.0]"),
        ("CHANGELOG.md", "[0.2.0] - 2026-11-20", "[0.2.0]", "[0.2.0] has no date"),
        ("CHANGELOG.md", "- A.\n", "- A.\n\n### Added\n- E.\n", "[0.2.0] has Added 2 times"),
        ("CHANGELOG.md", "## [Unreleased]\n\n", "", "it does not begin with [Unreleased]"),
    ],
)
def test_what_is_not_ready_is_named(tree: Path, name: str, old: str, new: str, said: str) -> None:
    path = tree / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    commit(tree)
    assert any(said in line for line in faults(tree)), faults(tree)


def test_databases_of_the_version_before_have_to_be_there(tree: Path) -> None:
    shutil.rmtree(tree / "tests/upgrade/v0_1")
    commit(tree)
    assert faults(tree) == ["tests/upgrade/v0_1: there are no databases of 0.1"]


def test_a_tag_is_of_one_commit_and_a_tree_is_committed(tree: Path) -> None:
    git(tree, "tag", "v0.2.0")
    commit(tree)
    (tree / "new.txt").touch()
    assert faults(tree) == [
        "git: there are changes that are in no commit",
        "git: v0.2.0 is another commit; this tree needs a new version",
    ]
