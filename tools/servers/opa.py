"""Open Policy Agent: built from source, run as a server with a folder of policies.

python -m tools.servers.opa     builds it when it is not here yet
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server

MODULE = "github.com/open-policy-agent/opa"


def opa() -> GoProgram:
    """The program: `opa run`, `opa check`, `opa test`."""
    return GoProgram("OPA", SERVERS / "opa_go", MODULE, MODULE, kept() / "bin" / "opa")


class Opa(Server):
    """Serves the modules in `policies`; without it, none."""

    name = "opa"

    def __init__(self, folder: Path, port: int | None = None, *, policies: Path | None = None) -> None:
        super().__init__(folder, port)
        self.policies = policies

    @classmethod
    def missing(cls) -> str | None:
        """Builds it when it is not here yet; not in the middle of a test, since that takes minutes."""
        return opa().why_missing()

    @classmethod
    def version(cls) -> str:
        return opa().version

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        options = ["--addr", f"127.0.0.1:{self.port}", "--skip-version-check", "--log-level", "error"]
        return [str(opa().path), "run", "--server", *options, *([str(self.policies)] if self.policies else [])]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=0.5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


if __name__ == "__main__":
    try:
        opa().build()
    except NotBuiltError as error:
        sys.exit(str(error))
