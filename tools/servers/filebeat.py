"""Filebeat, built from source: what tests send lines of logs through, with the files of deploy/elk.

python -m tools.servers.filebeat     builds it when it is not here yet
"""

from __future__ import annotations

import sys

from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server

MODULE = "github.com/elastic/beats/v7"


def filebeat() -> GoProgram:
    return GoProgram("Filebeat", SERVERS / "filebeat_go", MODULE, f"{MODULE}/filebeat", kept() / "bin" / "filebeat")


class Filebeat(Server):
    """Only whether it is here, and which; tests run it on files and it ends by itself."""

    name = "filebeat"

    @classmethod
    def missing(cls) -> str | None:
        """Builds it when it is not here yet; not in the middle of a test, since that takes minutes."""
        return filebeat().why_missing()

    @classmethod
    def version(cls) -> str:
        return filebeat().version


if __name__ == "__main__":
    try:
        filebeat().build()
    except NotBuiltError as error:
        sys.exit(str(error))
