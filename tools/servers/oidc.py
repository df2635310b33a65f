"""An OpenID Connect provider: `oidc-provider` from npm, run by Node.js, with users that tests make up.

python -m tools.servers.oidc     installs its packages when they are not here yet
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tools.servers.go_build import SERVERS, kept
from tools.servers.server import Server

SOURCE = SERVERS / "oidc_node"
INSTALL_TIMEOUT_S = 300


def installed() -> Path:
    """The folder of the packages and of the program, named after the lock file that it was made from."""
    parts = [(SOURCE / name).read_bytes() for name in ("package-lock.json", "provider.mjs")]
    return kept() / "oidc" / hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def install() -> str:
    """Why it cannot be installed; empty when it is there."""
    folder = installed()
    if folder.is_dir():
        return ""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return "there is no npm here"
    made = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(SOURCE, made)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"npm ci took more than {INSTALL_TIMEOUT_S} s"
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        return f"npm ci: {(said or done.stderr.splitlines() or ['failed'])[0]}"
    try:
        made.rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(made)
    return ""


class Oidc(Server):
    """`redirect_uri` is where the clients `oraculo` (with a secret) and `publico` may be sent back to."""

    name = "oidc"
    secret = "um-segredo-de-teste-bem-comprido"

    def __init__(
        self, folder: Path, port: int | None = None, *, redirect_uri: str = "http://127.0.0.1:1/login"
    ) -> None:
        super().__init__(folder, port)
        self.redirect_uri = redirect_uri

    @classmethod
    def missing(cls) -> str | None:
        """Installs it when it is not here yet; not in the middle of a test."""
        if installed().is_dir():
            return None
        if "ORACULO_TEST_RUN" in os.environ:
            return "it is not installed yet (make services)"
        return install() or None

    @classmethod
    def version(cls) -> str:
        lock = json.loads((SOURCE / "package-lock.json").read_text())
        return str(lock["packages"]["node_modules/oidc-provider"]["version"])

    @property
    def url(self) -> str:
        """The issuer."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return ["node", str(installed() / "provider.mjs"), str(self.port), self.redirect_uri]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/.well-known/openid-configuration", timeout=0.5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


if __name__ == "__main__":
    if error := install():
        sys.exit(error)
