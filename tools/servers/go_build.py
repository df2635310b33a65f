"""Programs that are built from source through the Go module proxy, once, into `.services/`.

Each has a folder with `go.mod` and `go.sum`, which pins every module by its hash. A program is built again when these
files or its options have changed. ORACULO_SERVICES names another folder than `.services` to keep programs in.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SERVERS = Path(__file__).parent
BUILD_TIMEOUT_S = 3600.0


class NotBuiltError(Exception):
    """A program is not here and could not be built."""


def kept() -> Path:
    """Where programs are kept."""
    return Path(os.environ.get("ORACULO_SERVICES") or SERVERS.parents[1] / ".services")


def find_go() -> str | None:
    """The Go on the PATH, else the newest of Debian's, which are beside it; None when there is none."""
    beside = sorted(Path("/usr/lib").glob("go-1.*/bin/go"), key=lambda path: int(path.parts[3].partition(".")[2]))
    return shutil.which("go") or (str(beside[-1]) if beside else None)


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A `package` of the Go module in `folder`, built to `path`; its version is that of `module` in go.mod."""

    title: str
    folder: Path
    module: str
    package: str
    path: Path
    ldflags: str = ""
    tags: str = ""

    @property
    def version(self) -> str:
        found = re.search(rf"^(?:require)?\s*{re.escape(self.module)} v(\S+)", self._text("go.mod"), re.M)
        assert found is not None, f"{self.module} is not in {self.folder}/go.mod"
        return found[1]

    @property
    def current(self) -> bool:
        """Whether it is built, from these files and with these options."""
        key = self._key_file()
        return self.path.exists() and key.exists() and key.read_text() == self._key()

    def build(self) -> Path:
        """The program; built when it is not there or not current. One process at a time."""
        if not self.current:
            go = self._go()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path.parent / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not self.current:
                    self._build(go)
                    self._key_file().write_text(self._key())
        return self.path

    def why_missing(self) -> str | None:
        """None when it is built, which is tried; not in the middle of a test, since that takes minutes."""
        if "ORACULO_TEST_RUN" in os.environ and not self.current:
            return "it is not built yet (make services)"
        try:
            self.build()
        except NotBuiltError as error:
            return str(error)
        return None

    def module_folder(self, module: str) -> Path:
        """Where Go keeps the source of a module that this program is built from."""
        found = self._run(self._go(), "list", "-m", "-f", "{{.Dir}}", module)
        return Path(found.strip())

    def _build(self, go: str) -> None:
        part = self.path.with_suffix(f".{os.getpid()}")
        options = ["-buildvcs=false", "-trimpath", "-ldflags", f"-s -w {self.ldflags}".strip(), "-o", str(part)]
        self._run(go, "build", *options, *(["-tags", self.tags] if self.tags else []), self.package)
        part.rename(self.path)

    def _run(self, *command: str) -> str:
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotBuiltError(f"the build of {self.title} took more than {BUILD_TIMEOUT_S:.0f} s") from None
        if done.returncode:
            last = next(iter(reversed(done.stderr.splitlines())), "")
            raise NotBuiltError(f"{self.title} cannot be built: {last}")
        return done.stdout

    def _go(self) -> str:
        """A Go that is new enough for this program."""
        go = find_go()
        if go is None:
            raise NotBuiltError(f"{self.title} is built with Go, and there is none")
        said = subprocess.run([go, "env", "GOVERSION"], cwd=self.folder, capture_output=True, text=True, check=False)
        wanted = re.search(r"^go (\d+)\.(\d+)", self._text("go.mod"), re.M)
        found = re.match(r"go(\d+)\.(\d+)", said.stdout)
        assert wanted is not None
        if found is None or (int(found[1]), int(found[2])) < (int(wanted[1]), int(wanted[2])):
            version = said.stdout.strip() or "this one"
            raise NotBuiltError(f"{self.title} needs Go {wanted[1]}.{wanted[2]} or newer, not {version}")
        return go

    def _key_file(self) -> Path:
        return self.path.with_name(f"{self.path.name}.key")

    def _key(self) -> str:
        parts = (self._text("go.mod"), self._text("go.sum"), self.package, self.ldflags, self.tags)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text()
