"""`oraculo …` in a process of its own, forked from one that has everything imported already.

It is killed, frozen and waited for like any other process, and is ready in a quarter of the time: an interpreter of its
own would import all of it first. Where that matters, tests use `python -m oraculo`.
"""

from __future__ import annotations

import os
import signal
import sys
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, TextIO

from oraculo import cli

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *(f"oraculo.cli.{module.stem}" for module in Path(cli.__path__[0]).glob("[a-z]*.py")),
        "oraculo.client.client",
        "oraculo.api.app",
        "oraculo.wire.requests",
        "oraculo.adapters.stores.sqlite.store",
        "oraculo.adapters.stores.postgres",
        "oraculo.adapters.brokers.rabbitmq",
        "oraculo.adapters.brokers.redis_streams",
        "oraculo.adapters.brokers.nats_jetstream",
        "oraculo.adapters.brokers.kafka",
        "oraculo.engines.temporal.engine",
        "uvicorn",
    ]
)


def run(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], files: Sequence[Any]) -> None:
    """What the console script does, with these for standard input, output and error: names of files, or connections."""
    for number, file in enumerate(files):
        flags = os.O_RDONLY if number == 0 else os.O_CREAT | os.O_WRONLY | os.O_APPEND
        os.dup2(os.open(file, flags, 0o600) if isinstance(file, str) else file.fileno(), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[:0] = [str(cwd), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["oraculo", *arguments]
    from oraculo.cli.main import run

    run()


class Forked:
    """As far as tests need it, what subprocess.Popen is; `stdout` are the lines that it says."""

    def __init__(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], errors: Path) -> None:
        reader, writer = FORKS.Pipe(duplex=False)
        files = (os.devnull, writer, str(errors))
        self._process = FORKS.Process(target=run, args=(list(arguments), cwd, dict(env), files))
        self._process.start()
        writer.close()
        self.stdout: TextIO = open(os.dup(reader.fileno()))  # noqa: SIM115
        weakref.finalize(self, self.stdout.close)  # nobody waits for a process that ended by itself
        reader.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise TimeoutExpired("oraculo", timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
