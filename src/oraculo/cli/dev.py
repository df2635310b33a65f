"""`oraculo dev FILE`: a server that stays, and the workers of a Python file, started again whenever a file changes.

The server keeps its runs in the folder's database. The workers are a process of their own, so that their code is always
read anew; while the file cannot be loaded, orders wait.
"""

from __future__ import annotations

import asyncio
import json as json_format
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from oraculo import __version__, logs, redaction
from oraculo.api.auth import check_binding
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.keys import has_administrator
from oraculo.cli.output import AsJson, emit, note
from oraculo.cli.serve import listening, run, serve, url_of
from oraculo.cli.texts import t
from oraculo.settings import settings

POLL_INTERVAL_S = 0.3
STOP_TIMEOUT_S = 3.0  # that workers get to give back what they do
SKIPPED_FOLDERS = frozenset(("__pycache__", "node_modules"))
Snapshot = dict[str, int]  # file → when it was changed, in nanoseconds


def dev(
    file: Annotated[str, typer.Argument(help=t("o.dev-file"), metavar="FILE")],
    host: Annotated[str | None, typer.Option(help=t("o.host"), show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help=t("o.port"), show_default=False, min=0, max=65535)] = None,
    json: AsJson = False,
) -> None:
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise CommandError(t("dev-no-file", file=file), Exit.USAGE)
    options = {"ORACULO_HOST": host, "ORACULO_PORT": port}
    chosen = settings.load(options={name: str(value) for name, value in options.items() if value is not None})
    check_binding(chosen, lambda: has_administrator(chosen))
    logs.configure(chosen.logs.level, chosen.logs.format, *chosen.traces.service)
    with listening(chosen.host, chosen.port) as listener, TemporaryDirectory() as reports:
        url = url_of(listener, secure=bool(chosen.tls.cert))
        store = redaction.urls(chosen.store)
        told = _tell_json if json else _tell
        reload_loop = ReloadLoop(path, url, Path(reports), told, quiet=json)

        def ready() -> None:
            if json:
                emit({"url": url, "pid": os.getpid(), "store": store, "file": file})
            note(t("listening", version=__version__, url=url))
            for line in _introduction(file, url, store):
                note(line)
            reload_loop.start()

        try:
            run(serve(chosen, [], listener, ready, stopping=reload_loop.stop))
        finally:
            reload_loop.stop()


def _introduction(file: str, url: str, store: str) -> Iterator[str]:
    rows = [("up.dashboard", f"{url}/"), ("up.api", f"{url}/docs"), ("up.store", store), ("dev.watches", file)]
    width = max(len(t(name)) for name, _ in rows)
    yield from (f"  {t(name):<{width}}  {value}" for name, value in rows)
    yield t("dev.next", file=file) if url.endswith(":8000") else t("dev.next-url", file=file, url=url)
    yield t("up.stop")


def _tell_json(event: dict[str, Any]) -> None:
    emit(event)
    _tell(event)


def _tell(event: dict[str, Any]) -> None:
    match event["evento"]:
        case "carregado":
            note(t("dev.loaded", queues=", ".join(event["filas"])))
        case "falhou":
            for line in event["erro"].splitlines():
                note(line)
            note(t("dev.failed"))
        case _:
            note(t("dev.ended", status=event["status"]))


class ReloadLoop:
    """The process of the workers of one file: started, watched, and started again when a file below its folder
    changes. `tell` gets every event: `carregado` with `filas`, `falhou` with `erro`, `terminou` with `status`."""

    def __init__(
        self, file: Path, url: str, reports: Path, tell: Callable[[dict[str, Any]], None], *, quiet: bool
    ) -> None:
        self._file = file
        self._url = url
        self._reports = reports
        self._tell = tell
        self._quiet = quiet  # standard output is for machines
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._number = 0
        self._told = False

    def start(self) -> None:
        """Begin to watch; needs a running event loop."""
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Stop watching, and the workers."""
        if self._task is not None:
            self._task.cancel()
        self._end()

    async def _run(self) -> None:
        seen = await asyncio.to_thread(snapshot, self._file)
        self._begin()
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            self._look()
            now = await asyncio.to_thread(snapshot, self._file)
            if now == seen:
                continue
            while (later := await _after_a_moment(self._file)) != now:  # somebody is still writing
                now = later
            seen = now
            await asyncio.to_thread(self._end)
            self._begin()

    def _begin(self) -> None:
        self._number += 1
        self._told = False
        command = [sys.executable, "-m", "oraculo.cli.dev_workers", str(self._file), self._url, str(self._report)]
        output = sys.stderr if self._quiet else None
        self._process = subprocess.Popen(command, stdout=output, stdin=subprocess.DEVNULL, start_new_session=True)

    @property
    def _report(self) -> Path:
        return self._reports / str(self._number)

    def _look(self) -> None:
        """Tell what the workers report, and when they are gone."""
        status = None if self._process is None else self._process.poll()
        if not self._told and self._report.exists():
            self._told = True
            self._tell(json_format.loads(self._report.read_text(encoding="utf-8")))
            return
        if status is not None:
            self._process = None
            if not self._told or status:
                self._tell({"evento": "terminou", "status": status})

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _after_a_moment(file: Path) -> Snapshot:
    await asyncio.sleep(POLL_INTERVAL_S / 2)
    return await asyncio.to_thread(snapshot, file)


def snapshot(file: Path) -> Snapshot:
    """When each Python file below the folder of `file` was changed; hidden folders and environments are left out."""
    found: Snapshot = {}
    for folder, folders, names in os.walk(file.resolve().parent):
        folders[:] = [
            name
            for name in folders
            if name not in SKIPPED_FOLDERS
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with suppress(OSError):  # it was removed just now
                    found[path] = os.stat(path).st_mtime_ns
    return found
