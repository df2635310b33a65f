"""The `oraculo` command, also as `python -m oraculo`.

Every command is in `oraculo.cli`, which needs the extra `cli` (the extra `server` brings it). A bare install has
`oraculo worker`, and names the extra for everything else.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import NoReturn

from oraculo import __version__

EXIT_USAGE = 2
VERSION_ARGUMENTS = (["version"], ["--version"])
CLI_MODULES = ("typer", "rich")
SERVER_COMMANDS = [["up"], ["demo"], ["doctor"], ["replay"], ["prune"], ["bench"], ["prove"], ["migrate"], ["topics"]]


def run() -> None:
    """The console entry point. The version is said without importing the commands."""
    if sys.argv[1:] in VERSION_ARGUMENTS:
        print(f"oraculo {__version__}")
        return
    try:
        from oraculo.cli.main import run as run_command
    except ModuleNotFoundError as error:
        if error.name not in CLI_MODULES:
            raise
        run_bare(sys.argv[1:])
    else:
        run_command()


def run_bare(arguments: Sequence[str]) -> None:
    """Run a worker without the extra `cli`; SystemExit with one line for every other command."""
    from oraculo.errors import MissingExtraError, OraculoError

    if not arguments or arguments[0] != "worker":
        command = " ".join(["oraculo", *arguments[:1]])
        _fail(MissingExtraError(command, "server" if arguments[:1] in SERVER_COMMANDS else "cli"))
    parser = ArgumentParser("oraculo worker", description="Run the functions of a Worker.")
    parser.add_argument("target", metavar="MODULE:WORKER")
    parser.add_argument("--url", help="lease orders over HTTP from the server at this address")
    parser.add_argument("--concurrency", type=int, help="orders that are worked on at once")
    parser.add_argument("--name", help="the name of this worker")
    chosen = parser.parse_args(arguments[1:])
    try:
        _work(chosen.target, chosen.url, chosen.concurrency, chosen.name)
    except OraculoError as error:
        _fail(error)


def _work(target: str, url: str | None, concurrency: int | None, name: str | None) -> None:
    from oraculo import logs
    from oraculo.errors import MissingExtraError
    from oraculo.settings import load
    from oraculo.worker.target import worker_of

    settings = load()
    logs.configure(settings.logs.level, settings.logs.format, settings.traces.service_name)
    for warning in settings.warnings():
        print(f"oraculo: {warning}", file=sys.stderr)
    if settings.metrics_port is not None:
        raise MissingExtraError("ORACULO_METRICS_PORT", "server")
    worker = worker_of(target)
    worker.concurrency = concurrency or worker.concurrency
    worker.name = name or worker.name
    worker.run_forever(url=url)


def _fail(error: Exception) -> NoReturn:
    print(f"oraculo: {error}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


if __name__ == "__main__":
    run()
