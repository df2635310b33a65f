"""Compose files read as Docker Compose reads them, by its own library and without a container engine.

python -m tools.servers.compose     builds the reader when it is not here yet, and says where it is
"""

from __future__ import annotations

import sys

from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server

MODULE = "github.com/compose-spec/compose-go/v2"


def program() -> GoProgram:
    return GoProgram(
        "the reader of compose files", SERVERS / "compose_go", MODULE, ".", kept() / "bin" / "compose-config"
    )


class Compose(Server):
    """Not a server: a program that tests call."""

    name = "compose"

    @classmethod
    def missing(cls) -> str | None:
        return program().why_missing()

    @classmethod
    def version(cls) -> str:
        return program().version


if __name__ == "__main__":
    try:
        print(program().build())  # noqa: T201
    except NotBuiltError as error:
        sys.exit(str(error))
