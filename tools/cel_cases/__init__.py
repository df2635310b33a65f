"""The official conformance cases of CEL, as the language's own Go module ships them.

    python -m tools.cel_cases     fetches them when they are not here yet, and says where they are

They go to `.services/cel/<version>`; `go/go.sum` pins the module by its hash. ORACULO_SERVICES names another folder
than `.services`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.servers.go_build import find_go, kept

MODULE = "cel.dev/expr"
GO_FOLDER = Path(__file__).with_name("go")
DOWNLOAD_TIMEOUT_S = 300


class NoCasesError(Exception):
    """The cases are not here and could not be fetched."""


def version() -> str:
    found = re.search(rf"{MODULE} v(\S+)", (GO_FOLDER / "go.mod").read_text())
    assert found is not None
    return found[1]


def folder() -> Path:
    """Where the cases are, or would be."""
    return kept() / "cel" / version()


def fetch() -> Path:
    """The folder with the cases; fetched when it is not there."""
    made = folder()
    if made.exists():
        return made
    go = find_go()
    if go is None:
        raise NoCasesError("the cases come as a Go module, and there is no go")
    try:
        done = subprocess.run(
            [go, "mod", "download", "-json", MODULE],
            cwd=GO_FOLDER,
            env={**os.environ, "GOFLAGS": "-mod=readonly"},
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoCasesError(f"the download took more than {DOWNLOAD_TIMEOUT_S} s") from None
    if done.returncode:
        raise NoCasesError(f"go mod download failed: {(done.stderr or done.stdout).strip()[-300:]}")
    source = Path(json.loads(done.stdout)["Dir"])
    part = made.with_name(f"{made.name}.{os.getpid()}")
    shutil.copytree(source / "tests" / "simple" / "testdata", part)
    shutil.copy(source / "LICENSE", part)
    try:
        part.rename(made)
    except OSError:  # another process was quicker
        shutil.rmtree(part)
    return made
