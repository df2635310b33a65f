"""FerretDB: what speaks the protocol of MongoDB in tests. Its data are in SQLite files.

    python -m services.ferretdb     builds it when it is not here yet, and says where it is

It is built from source through the Go module proxy, once, into `.services/ferretdb/<version>`; `ferretdb_go/go.sum`
pins every module by its hash. ORACULO_SERVICES names another folder than `.services` to keep it in.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from services.server import Server

MODULE = "github.com/FerretDB/FerretDB"
BUILD = Path(__file__).with_name("ferretdb_go")
PATIENCE = 900.0  # seconds for the build
OLDEST_GO = (1, 24)


class NotBuiltError(Exception):
    """It is not here and could not be built."""


def version() -> str:
    found = re.search(rf"{MODULE} v(\S+)", (BUILD / "go.mod").read_text())
    assert found is not None
    return found[1]


def program() -> Path:
    kept = os.environ.get("ORACULO_SERVICES") or Path(__file__).parent.parent / ".services"
    return Path(kept) / "ferretdb" / version() / "ferretdb"


def build() -> Path:
    """The program; built when it is not there. One process at a time."""
    made = program()
    if made.exists():
        return made
    go = _go()
    made.parent.mkdir(parents=True, exist_ok=True)
    with open(made.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _build(go, made)
    return made


def _go() -> str:
    """The one on the PATH, else the newest of Debian's, which are beside it."""
    beside = sorted(Path("/usr/lib").glob("go-1.*/bin/go"), key=lambda path: int(path.parts[3].partition(".")[2]))
    go = shutil.which("go") or (str(beside[-1]) if beside else None)
    if go is None:
        raise NotBuiltError("FerretDB is built with Go, and there is none")
    said = subprocess.run([go, "env", "GOVERSION"], cwd=BUILD, capture_output=True, text=True, check=False).stdout
    found = re.match(r"go(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GO:
        raise NotBuiltError(
            f"FerretDB needs Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer, not {said.strip() or 'this one'}"
        )
    return go


def _build(go: str, made: Path) -> None:
    part = made.with_suffix(f".{os.getpid()}")
    options = ["-buildvcs=false", "-trimpath", "-tags", "ferretdb_no_postgresql", "-ldflags", "-s -w", "-o", str(part)]
    try:
        done = subprocess.run(
            [go, "build", *options, "."],
            cwd=BUILD,
            env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotBuiltError(f"the build of FerretDB took more than {PATIENCE:.0f} s") from None
    if done.returncode:
        last = next(iter(reversed(done.stderr.splitlines())), "")
        raise NotBuiltError(f"FerretDB cannot be built: {last}")
    part.rename(made)


class FerretDB(Server):
    name = "ferretdb"

    @classmethod
    def missing(cls) -> str | None:
        """Builds it when it is not here yet; not in the middle of a test, since that takes a minute or two."""
        if "ORACULO_TEST_RUN" in os.environ and not program().exists():
            return "it is not built yet (make services)"
        try:
            build()
        except NotBuiltError as error:
            return str(error)
        return None

    @classmethod
    def version(cls) -> str:
        return version()

    def command(self) -> list[str]:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        return [str(program()), str(self.port), str(data)]

    @property
    def url(self) -> str:
        """What MONGODB_URI takes."""
        return f"mongodb://127.0.0.1:{self.port}/"


if __name__ == "__main__":
    try:
        print(build())  # noqa: T201
    except NotBuiltError as error:
        sys.exit(str(error))
