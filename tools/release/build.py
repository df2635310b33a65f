"""Builds what a release publishes into `dist/`: wheel, source archive, CycloneDX SBOM and SHA256SUMS.

    python -m tools.release.build

The same commit gives the same wheel and archive, byte for byte: times in them are the commit's. The SBOM tells what
`pip install 'oraculo[all]'` with requirements.lock brings, read from an environment in which just that is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
SBOM_TOOLS = Path(__file__).with_name("requirements.lock")

# The SBOM tool leaves out a licence that a package names in words of its own.
DECLARED_LICENCES = """
import importlib.metadata, json
print(json.dumps({one.name: one.metadata["License"] for one in importlib.metadata.distributions()}))
"""


def run(*command: str | Path, **environment: str) -> str:
    """The standard output of a command that must go well."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} {command[1]}: {done.stderr[-3000:] or done.stdout[-3000:]}")
    return done.stdout


def packages(folder: Path) -> list[Path]:
    """The wheel and the source archive, made anew in `folder`."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    when = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "315532800"
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, SOURCE_DATE_EPOCH=when)
    return sorted(folder.glob("oraculo-*"))


def environment(folder: Path, python: Path, package: Path, extras: str = "all") -> Path:
    """A virtual environment with the package and what it needs, by the hashes of the lock; its Python."""
    run(BIN / "uv", "venv", "--quiet", "--python", python, folder)
    parts = folder / "parts.lock"
    parts.write_text(
        run(sys.executable, "deploy/image/locked.py", "pyproject.toml", "requirements.lock", "--extras", extras)
    )
    inside = folder / "bin/python"
    run(BIN / "uv", "pip", "install", "--quiet", "--python", inside, "--require-hashes", "-r", parts)
    run(BIN / "uv", "pip", "install", "--quiet", "--python", inside, "--no-deps", package)
    return inside


def sbom(wheel: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inside = environment(Path(folder) / "product", Path(sys.executable), wheel)
        tools = Path(folder) / "tools"
        run(BIN / "uv", "venv", "--quiet", "--python", sys.executable, tools)
        run(
            BIN / "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            tools / "bin/python",
            "--require-hashes",
            "-r",
            SBOM_TOOLS,
        )
        options = ["--pyproject", "pyproject.toml", "--mc-type", "application", "--output-reproducible"]
        run(tools / "bin/cyclonedx-py", "environment", *options, "--of", "JSON", "-o", target, inside)
        declared = json.loads(run(inside, "-c", DECLARED_LICENCES))
    document = json.loads(target.read_text(encoding="utf-8"))
    for component in document["components"]:
        if not component.get("licenses") and (text := declared.get(component["name"])):
            component["licenses"] = [{"license": {"name": text, "acknowledgement": "declared"}}]
    document["metadata"]["component"]["version"] = wheel.name.split("-")[1]  # which pyproject.toml does not say
    target.write_text(json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def sums(folder: Path) -> Path:
    target = folder / "SHA256SUMS"
    files = sorted(path for path in folder.iterdir() if path != target)
    target.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    return target


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    made = packages(DIST)
    wheel = next(path for path in made if path.suffix == ".whl")
    sbom(wheel, DIST / f"{wheel.name.partition('-py3')[0]}.cdx.json")
    sys.stdout.write(sums(DIST).read_text())


if __name__ == "__main__":
    main()
