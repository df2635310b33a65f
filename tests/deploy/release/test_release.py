"""What a release publishes: installed into an empty environment of every Python, it shows the main job working."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from tools.release import build, first_result
from tools.release.interpreters import VERSIONS, NoInterpreterError, interpreter

from oraculo import __version__
from servers import REQUIRE

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("release")]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    files = build.packages(tmp_path_factory.mktemp("dist"))
    return {"wheel" if path.suffix == ".whl" else "sdist": path for path in files}


def python(version: str) -> Path:
    try:
        return interpreter(version)
    except NoInterpreterError as error:
        say = pytest.fail if os.environ.get(REQUIRE) else pytest.skip
        say(str(error))


def inside(python: Path, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of that environment, with nothing of this one."""
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [str(python.parent / command[0]), *command[1:]],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("version", "kind", "extras"),
    [
        *((version, "wheel", "all") for version in VERSIONS),
        (VERSIONS[0], "sdist", "server,workers"),
        (VERSIONS[-1], "wheel", "server"),
    ],
)
def test_it_installs_and_runs(made: dict[str, Path], tmp_path: Path, version: str, kind: str, extras: str) -> None:
    there = build.environment(tmp_path / "venv", python(version), made[kind], extras)
    said = inside(there, "python", "--version", folder=tmp_path).stdout
    assert said.startswith(f"Python {version}.")
    assert inside(there, "oraculo", "version", folder=tmp_path).stdout.strip() == f"oraculo {__version__}"
    checked = subprocess.run(
        [str(build.BIN / "uv"), "pip", "check", "--python", str(there)], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    if "workers" not in extras and extras != "all":  # the report of the demo needs that extra
        doctor = json.loads(inside(there, "oraculo", "doctor", "--json", folder=tmp_path).stdout)
        assert doctor["ok"] is True
        return
    (reader := tmp_path / "reader").mkdir()
    hour = first_result.before_the_result(first_result.README.read_text(encoding="utf-8"))
    assert first_result.follow(hour, there.parent, reader).result < first_result.PROMISED_S
    demo = inside(there, "oraculo", "demo", folder=tmp_path)
    assert demo.returncode == 0, demo.stderr
    assert "concluida: 16 items" in demo.stdout
    found = re.search(r"^ *(/\S+relatorio\.pdf)$", demo.stdout, re.M)
    assert found is not None
    assert Path(found[1]).read_bytes().startswith(b"%PDF")


def test_the_same_commit_gives_the_same_files(made: dict[str, Path], tmp_path: Path) -> None:
    for again in build.packages(tmp_path):
        assert again.read_bytes() in [path.read_bytes() for path in made.values()]


def test_the_source_archive_holds_what_the_tests_need_and_nothing_private(made: dict[str, Path]) -> None:
    with tarfile.open(made["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "requirements.lock", "Makefile", "LICENSE", "Dockerfile", "compose.yaml"} <= names
    assert {".env", "oraculo.db"} & names == set()
    assert not [name for name in names if name.startswith((".services", ".venv", "dist/"))]


def test_the_wheel_has_every_file_that_is_not_code(made: dict[str, Path]) -> None:
    source = build.ROOT / "src/oraculo"
    wanted = {
        f"oraculo/{path.relative_to(source)}"
        for path in source.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(made["wheel"]) as archive:
        found = {name for name in archive.namelist() if name.startswith("oraculo/")}
    assert found == wanted


def test_the_sbom_names_what_is_installed(made: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "sbom.json"
    build.sbom(made["wheel"], target)
    document = json.loads(target.read_text(encoding="utf-8"))
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "oraculo"
    assert document["metadata"]["component"]["version"] == __version__
    names = {component["name"] for component in document["components"]}
    assert {"apsw", "fastapi", "temporalio", "psycopg", "aiokafka"} <= names
    assert not names & {"pytest", "cyclonedx-bom", "pip"}
    assert [one["name"] for one in document["components"] if not one.get("licenses")] == []
    (protobuf,) = [one for one in document["components"] if one["name"] == "protobuf"]
    assert protobuf["licenses"][0]["license"]["name"] == "3-Clause BSD License", "its own words"
    assert all(one["purl"].startswith("pkg:pypi/") for one in document["components"] if one["name"] != "oraculo")
