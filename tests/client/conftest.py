"""A server with a worker inside, and one that can be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tools.servers.server import free_port

from cli.processes import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("server"), "--worker", "trabalho:worker")
    one.start()
    yield one
    one.kill()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server of one's own on a fixed port: killed and started again, it is found again."""
    started: list[Server] = []

    def begin(*arguments: str, **env: str) -> Server:
        one = Server(tmp_path, *arguments, port=free_port(), **env)
        started.append(one)
        one.start()
        return one

    yield begin
    for one in started:
        one.kill()
