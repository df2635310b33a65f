"""An S3 server, Versity's gateway over a folder: built from source, with a key and a bucket of its own.

python -m tools.servers.s3     builds it when it is not here yet
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server, listens

MODULE = "github.com/versity/versitygw"
ACCESS_KEY, SECRET_KEY = "oraculo-test", "secret-of-the-s3-server"
BUCKET = "oraculo"


def versitygw() -> GoProgram:
    """The program: `versitygw posix FOLDER`."""
    return GoProgram("S3", SERVERS / "s3_go", MODULE, f"{MODULE}/cmd/versitygw", kept() / "bin" / "versitygw")


class S3(Server):
    """Checks signatures; each folder in its own is a bucket."""

    name = "s3"

    @classmethod
    def missing(cls) -> str | None:
        """Builds it when it is not here yet; not in the middle of a test, since that takes minutes."""
        return versitygw().why_missing()

    @classmethod
    def version(cls) -> str:
        return versitygw().version

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        buckets = self.folder / "buckets"
        (buckets / BUCKET).mkdir(parents=True, exist_ok=True)
        keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--keep-alive", "--quiet"]
        where = ["--port", f"127.0.0.1:{self.port}"]
        return [str(versitygw().path), *where, *keys, "posix", "--sidecar", str(self._sidecar()), str(buckets)]

    def answers(self) -> bool:
        return listens(self.port)

    def _sidecar(self) -> Path:
        """Where what is known of objects is kept; not every file system has attributes for that."""
        folder = self.folder / "attributes"
        folder.mkdir(exist_ok=True)
        return folder


if __name__ == "__main__":
    try:
        versitygw().build()
    except NotBuiltError as error:
        sys.exit(str(error))
