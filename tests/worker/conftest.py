"""Servers without workers, and workers in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tools.servers.server import free_port

from cli.processes import WORK, Process, Server, environment


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """On a fixed port: killed and started again, it is found again."""
    one = Server(tmp_path, port=free_port())
    one.start()
    yield one
    one.kill()


@pytest.fixture
def worker(tmp_path: Path, server: Server) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def begin(*arguments: str, **env: str) -> Process:
        folder = tmp_path / f"worker{len(started)}"
        folder.mkdir()
        (folder / "trabalho.py").write_text(WORK)
        one = Process(
            folder, ["worker", "trabalho:worker", "--url", server.url, *arguments], environment(folder, **env)
        )
        started.append(one)
        one.start()
        return one

    yield begin
    for one in started:
        one.kill()
