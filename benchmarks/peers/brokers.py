"""Fresh brokers for one measurement: the servers of `services/`, on a port and in a directory of their own.

Also a program, which runs a command beside such a server and stops both:

    brokers.py redis oraculo bench --workload W1 --broker {url} --json

`{url}` stands for the server's address. What the command prints is passed on; when it ends with a JSON object, that
object gets the server's version. Without a command it says whether the server can be started: exit status 0, or 1 and
the reason.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

CLASSES = {
    "redis": "services.redis:Redis",
    "rabbitmq": "services.rabbitmq:RabbitMQ",
    "nats": "services.nats:Nats",
    "kafka": "services.kafka:Kafka",
}


def class_of(name: str) -> Any:
    module, _, attribute = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def missing(name: str) -> str | None:
    """Why this server cannot be started; None when it can."""
    try:
        reason: str | None = class_of(name).missing()
    except ModuleNotFoundError as error:
        return f"no {error.name}"
    return reason


@contextlib.contextmanager
def running(name: str, directory: Path, port: int | None = None) -> Iterator[Any]:
    """The server, taking work; killed at the end, since nobody needs its data."""
    if reason := missing(name):
        raise RuntimeError(reason)
    with class_of(name)(directory / name, port) as server:
        yield server


def version(name: str) -> dict[str, str]:
    """As the record of a run has it."""
    return {f"{name}-server": class_of(name).version()}


def unwind_on_terminate() -> None:
    """SIGTERM ends this program like an exception would, so that everything it started is stopped."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def run_beside(name: str, command: list[str]) -> int:
    """Run the command with the server's address in it, and pass on what it prints."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, running(name, Path(directory)) as server:
        filled = [part.replace("{url}", server.url) for part in command]
        with subprocess.Popen(filled, stdout=subprocess.PIPE, text=True) as child:
            try:
                printed, _ = child.communicate()
            except BaseException:
                child.terminate()
                raise
    before, newline, last = printed.rstrip().rpartition("\n")
    with contextlib.suppress(ValueError):
        result = json.loads(last)
        if isinstance(result, dict):
            last = json.dumps({**result, "versions": {**result.get("versions", {}), **version(name)}})
    print(f"{before}{newline}{last}", flush=True)
    return child.returncode


def main() -> None:
    name, *command = sys.argv[1:]
    if command:
        unwind_on_terminate()
        sys.exit(run_beside(name, command))
    if reason := missing(name):
        print(reason)
        sys.exit(1)


if __name__ == "__main__":
    main()
