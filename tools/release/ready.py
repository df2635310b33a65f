"""Says what still stands between this tree and the tag of its version: one line each, exit status 1 when there is any.

    python -m tools.release.ready

docs/releasing.md says how each is done.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SECTION = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?\n(.*?)(?=^## \[|\Z)", re.M | re.S)


def faults(root: Path = ROOT) -> list[str]:
    """What is not ready, of version, chart, log of changes, notes for those who upgrade, and repository."""
    version = _version(root)
    return [*_chart(root, version), *_changes(root, version), *_upgrade(root, version), *_repository(root, version)]


def _version(root: Path) -> str:
    found = re.search(r'^__version__ = "(.+)"$', (root / "src/oraculo/__init__.py").read_text(encoding="utf-8"), re.M)
    assert found is not None
    return found[1]


def _chart(root: Path, version: str) -> Iterator[str]:
    chart = yaml.safe_load((root / "helm-charts/orchestrator-dynamic/Chart.yaml").read_text(encoding="utf-8"))
    for key in ("version", "appVersion"):
        if chart[key] != version:
            yield f"helm-charts/orchestrator-dynamic/Chart.yaml: {key} is {chart[key]}, not {version}"


def _sections(root: Path) -> list[tuple[str, str, str]]:
    """Name, date and text of each part of the log of changes, the newest first."""
    return SECTION.findall((root / "CHANGELOG.md").read_text(encoding="utf-8"))


def _changes(root: Path, version: str) -> Iterator[str]:
    sections = _sections(root)
    names = [name for name, _, _ in sections]
    if names[:1] != ["Unreleased"]:
        yield "CHANGELOG.md: it does not begin with [Unreleased]"
    elif lines := sections[0][2].strip():
        yield f"CHANGELOG.md: [Unreleased] has {len(re.findall('^- ', lines, re.M))} entries that are in no release"
    if version not in names:
        yield f"CHANGELOG.md: there is no [{version}]"
    for name, date, text in sections:
        if name != "Unreleased" and not date:
            yield f"CHANGELOG.md: [{name}] has no date"
        titles = re.findall(r"^### (.+)$", text, re.M)
        for title in sorted({one for one in titles if titles.count(one) > 1}):
            yield f"CHANGELOG.md: [{name}] has {title} {titles.count(title)} times"


def _upgrade(root: Path, version: str) -> Iterator[str]:
    notes = (root / "docs/upgrading.md").read_text(encoding="utf-8")
    minor = _minor(version)
    for before in sorted({_minor(name) for name, _, _ in _sections(root) if name != "Unreleased"} - {minor}):
        if f"## From {before}\n" not in notes:
            yield f"docs/upgrading.md: there is no part 'From {before}'"
        folder = f"tests/upgrade/v{before.replace('.', '_')}"
        if not (root / folder).is_dir():
            yield f"{folder}: there are no databases of {before}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _repository(root: Path, version: str) -> Iterator[str]:
    if _git(root, "status", "--porcelain"):
        yield "git: there are changes that are in no commit"
    tagged = _git(root, "rev-parse", "--verify", "--quiet", f"v{version}^{{commit}}")
    if tagged and tagged != _git(root, "rev-parse", "HEAD"):
        yield f"git: v{version} is another commit; this tree needs a new version"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    ).stdout.strip()


if __name__ == "__main__":
    found = faults()
    for line in found:
        print(f"not ready: {line}")  # noqa: T201
    sys.exit(1 if found else 0)
