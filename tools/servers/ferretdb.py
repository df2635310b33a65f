"""FerretDB: what speaks the protocol of MongoDB in tests. Its data are in SQLite files.

    python -m tools.servers.ferretdb     builds it when it is not here yet, and says where it is

It is built from source, once, into `.services/ferretdb/<version>`: see `go_build`.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server

MODULE = "github.com/FerretDB/FerretDB"


def program() -> GoProgram:
    folder = SERVERS / "ferretdb_go"
    made = GoProgram("FerretDB", folder, MODULE, ".", kept() / "ferretdb", tags="ferretdb_no_postgresql")
    return replace(made, path=kept() / "ferretdb" / made.version / "ferretdb")


class FerretDB(Server):
    name = "ferretdb"

    @classmethod
    def missing(cls) -> str | None:
        return program().why_missing()

    @classmethod
    def version(cls) -> str:
        return program().version

    def command(self) -> list[str]:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        return [str(program().path), str(self.port), str(data)]

    @property
    def url(self) -> str:
        """What MONGODB_URI takes."""
        return f"mongodb://127.0.0.1:{self.port}/"


if __name__ == "__main__":
    try:
        print(program().build())  # noqa: T201
    except NotBuiltError as error:
        sys.exit(str(error))
