"""Fresh brokers for one measurement: the servers of `tools/servers/`, on a port and in a directory of their own.

Also a program, which runs a command beside such a server and stops both:

    brokers.py redis oraculo bench --workload W1 --broker {url} --json
    brokers.py redis,postgres oraculo bench --workload W1 --broker {redis} --store {postgres} --json

`{url}` stands for the first server's address, `{redis}` for that of Redis. What the command prints is passed on; when
it ends with a JSON object, that object gets the servers' versions. Without a command it says whether the servers can be
started: exit status 0, or 1 and the reason.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
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
    "redis": "tools.servers.redis:Redis",
    "rabbitmq": "tools.servers.rabbitmq:RabbitMQ",
    "nats": "tools.servers.nats:Nats",
    "kafka": "tools.servers.kafka:Kafka",
    "postgres": "tools.servers.postgres:Postgres",
    "temporal": "tools.servers.temporal:Temporal",
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


def run_beside(names: list[str], command: list[str]) -> int:
    """Run the command with the servers' addresses in it, and pass on what it prints."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        urls = {name: stack.enter_context(running(name, directory)).url for name in names}
        urls["url"] = urls[names[0]]
        filled = [re.sub(r"{(\w+)}", lambda found: urls[found[1]], part) for part in command]
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
            for name in names:
                result["versions"] = {**result.get("versions", {}), **version(name)}
            last = json.dumps(result)
    print(f"{before}{newline}{last}", flush=True)
    return child.returncode


def main() -> None:
    names, *command = sys.argv[1:]
    if command:
        unwind_on_terminate()
        sys.exit(run_beside(names.split(","), command))
    if reason := next(filter(None, map(missing, names.split(","))), None):
        print(reason)
        sys.exit(1)


if __name__ == "__main__":
    main()
