"""The process of `oraculo dev` that has the workers of a Python file.

`python -m oraculo.cli.dev_workers FILE URL REPORT` writes to REPORT how loading the file went. It ends with the process
that started it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
import traceback
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from oraculo import logs
from oraculo.cli.texts import t
from oraculo.settings import settings
from oraculo.worker.connect import connected
from oraculo.worker.worker import Worker

PATIENCE_S = 1.0  # that work gets which was begun before a reload
PARENT_POLL_S = 1.0


class NoWorkerError(Exception):
    """A file that was loaded and has no Worker with a function."""


def load(file: Path) -> list[Worker]:
    """Run the file as a module of its own folder; return its workers that have functions."""
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Worker) and value.queues}
    if not found:
        raise NoWorkerError(t("dev.no-worker", file=file))
    return list(found.values())


def failure(file: Path, error: BaseException) -> str:
    """What a person wants to see of an error: the lines of the own files, without the way through Oráculo."""
    if isinstance(error, NoWorkerError):
        return str(error)
    told = traceback.TracebackException.from_exception(error)
    own = [frame for frame in told.stack if "importlib" not in frame.filename and frame.filename != __file__]
    told.stack = traceback.StackSummary.from_list(own)
    return "".join(told.format())


def report(path: Path, event: dict[str, Any]) -> None:
    """Write it at once or not at all."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(event), encoding="utf-8")
    unfinished.replace(path)


async def work(workers: list[Worker], url: str, loaded: dict[str, Any], told: Path) -> None:
    """Work until SIGTERM, or until the process that started this one is gone."""
    chosen = settings.load()

    def stop() -> None:
        for worker in workers:
            worker.stop()

    async def watch_parent() -> None:
        parent = os.getppid()
        while os.getppid() == parent:  # noqa: ASYNC110
            await asyncio.sleep(PARENT_POLL_S)
        stop()

    with suppress(NotImplementedError):  # not on Windows, where the process is just ended
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    watching = asyncio.create_task(watch_parent())
    async with AsyncExitStack() as stack:
        transports = [await stack.enter_async_context(connected(chosen, one.name, url=url)) for one in workers]
        report(told, loaded)
        runs = (
            worker.run(transport, log_orders=True, queue_names=chosen.queue_names)
            for worker, transport in zip(workers, transports, strict=True)
        )
        await asyncio.gather(*runs)
    watching.cancel()


def main(file: Path, url: str, told: Path) -> int:
    """Load and work; return the exit status."""
    chosen = settings.load()
    logs.configure(chosen.logs.level, chosen.logs.format, *chosen.traces.service)
    try:
        workers = load(file)
    except (Exception, SystemExit) as error:
        report(told, {"evento": "falhou", "erro": failure(file, error)})
        return 0
    for number, worker in enumerate(workers):
        worker.patience = min(worker.patience, PATIENCE_S)
        worker.name = f"{worker.name}-{number}" if number else worker.name
    queues = sorted({queue for worker in workers for queue in worker.queues})
    asyncio.run(work(workers, url, {"evento": "carregado", "filas": queues}, told))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
