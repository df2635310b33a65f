"""Vault: built from source, run unsealed in memory with a token of its own.

python -m tools.servers.vault     builds it when it is not here yet (ten minutes once)
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server

MODULE = "github.com/hashicorp/vault"
ROOT_TOKEN = "root-of-the-test-vault"


def vault() -> GoProgram:
    """The program. Its own go.mod replaces its parts by folders that no module holds; ours takes them as published."""
    return GoProgram("Vault", SERVERS / "vault_go", MODULE, MODULE, kept() / "bin" / "vault")


class Vault(Server):
    """Holds everything in memory: what it knew is gone when it stops."""

    name = "vault"

    @classmethod
    def missing(cls) -> str | None:
        """Builds it when it is not here yet; not in the middle of a test, since that takes minutes."""
        return vault().why_missing()

    @classmethod
    def version(cls) -> str:
        return vault().version

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        options = [f"-dev-listen-address=127.0.0.1:{self.port}", f"-dev-root-token-id={ROOT_TOKEN}"]
        return [str(vault().path), "server", "-dev", "-dev-no-store-token", "-log-level=error", *options]

    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.folder)}

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/sys/health", timeout=0.5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


if __name__ == "__main__":
    try:
        vault().build()
    except NotBuiltError as error:
        sys.exit(str(error))
