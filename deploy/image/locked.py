"""The part of requirements.lock that a selection needs, with its hashes: what is not asked for is not in the image.

    python3 locked.py pyproject.toml requirements.lock --extras workers,postgres
    python3 locked.py pyproject.toml requirements.lock --package hatchling

The lock says of each package which packages asked for it (`# via`). So all that a package needs is found without an
index, and with it at most what an extra of it would need. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)")
EXTRAS = re.compile(r"^([A-Za-z0-9._-]+)\[([^\]]+)\]")
PINNED = re.compile(r"^([a-z0-9][a-z0-9-]*)==")
OWN_NAME = "oraculo"


def normal(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock: str) -> dict[str, str]:
    """Package → its lines in the lock: the pin, the hashes, and who asked for it."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        pinned = PINNED.match(line)
        if pinned:
            name = pinned[1]
            found[name] = ""
        if name:
            found[name] += line
    return found


def asked_by(entry: str) -> Iterator[str]:
    """The packages that an entry of the lock names as its reasons."""
    _, _, reasons = entry.partition("# via")
    for line in reasons.splitlines():
        found = NAME.match(line.strip().removeprefix("#").strip())
        if found:
            yield normal(found[1])


def closure(locked: Mapping[str, str], roots: Iterable[str]) -> set[str]:
    """The roots, and all that they need."""
    needs: dict[str, set[str]] = {}
    for name, entry in locked.items():
        for reason in asked_by(entry):
            needs.setdefault(reason, set()).add(name)
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return found


def roots_of(project: Mapping[str, object], extras: Iterable[str]) -> set[str]:
    """The packages that the project names for itself and for these extras; an unknown extra is an error."""
    dependencies = project["dependencies"]
    optional = project["optional-dependencies"]
    assert isinstance(dependencies, list)
    assert isinstance(optional, dict)
    waiting = list(dependencies)
    for extra in extras:
        if extra not in optional:
            raise SystemExit(f"locked.py: no extra {extra!r}; there are {', '.join(sorted(optional))}")
        waiting += optional[extra]
    roots: set[str] = set()
    while waiting:
        text = waiting.pop()
        named = EXTRAS.match(text)
        if named and named[1] == OWN_NAME:
            for extra in named[2].split(","):
                waiting += optional[extra.strip()]
        else:
            found = NAME.match(text)
            assert found is not None, text
            roots.add(normal(found[1]))
    return roots


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pyproject", type=Path)
    parser.add_argument("lock", type=Path)
    parser.add_argument("--extras", default="", help="extras of the project, with commas between")
    parser.add_argument("--package", help="one package of the lock instead of the project")
    options = parser.parse_args(arguments)
    locked = entries(options.lock.read_text(encoding="utf-8"))
    extras = [extra.strip() for extra in options.extras.split(",") if extra.strip()]
    project = tomllib.loads(options.pyproject.read_text(encoding="utf-8"))["project"]
    roots = {normal(options.package)} if options.package else roots_of(project, extras)
    unknown = roots - locked.keys()
    if unknown:
        raise SystemExit(f"locked.py: not in {options.lock}: {', '.join(sorted(unknown))}")
    sys.stdout.write("".join(locked[name] for name in sorted(closure(locked, roots))))


if __name__ == "__main__":
    main()
