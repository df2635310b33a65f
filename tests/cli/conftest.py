"""One server with a worker inside for all the tests of a module, and commands to run against it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.processes import Cli, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("server"), "--worker", "trabalho:worker")
    one.start()
    yield one
    one.kill()


@pytest.fixture
def cli(server: Server) -> Cli:
    return Cli(server.folder, server.url)


@pytest.fixture
def alone(tmp_path: Path) -> Cli:
    """No server, an empty folder."""
    return Cli(tmp_path)
