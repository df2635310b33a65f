"""A real `celery worker` and a real `celery beat` of the engine `celery`, and the means to hurt them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tools.servers.reaper import forget, record

from servers import run_folder
from waiting import DEADLINE_S


class CeleryProcess:
    """`arguments` of the command `celery -A oraculo.engines.celery`; `says` is in its log when it is ready."""

    def __init__(self, folder: Path, env: dict[str, str], *arguments: str, says: str = "") -> None:
        self.folder, self.env, self.arguments, self.says = folder, env, arguments, says
        self.log = folder / f"{arguments[0]}.log"
        self._popen: subprocess.Popen[bytes] | None = None
        self._from = 0

    def start(self) -> Self:
        """Started; `wait` says when it is ready."""
        self.folder.mkdir(exist_ok=True)
        self._from = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "oraculo.engines.celery", *self.arguments],
                cwd=self.folder,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        record(run_folder(), self._popen.pid)  # it ends with the run, whatever happens to this process
        return self

    def wait(self) -> Self:
        until = time.monotonic() + DEADLINE_S
        while self.says not in self.said():
            if self._popen is None or self._popen.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"celery {self.arguments} is not ready: {self.said()[-3000:]}")
            time.sleep(0.02)
        return self

    def said(self) -> str:
        """Since it was started last."""
        with open(self.log, "rb") as log:
            log.seek(self._from)
            return log.read().decode(errors="replace")

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def children(self) -> list[int]:
        assert self._popen is not None
        path = Path(f"/proc/{self._popen.pid}/task/{self._popen.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def kill_child(self, which: int) -> None:
        children = self.children()
        os.kill(children[which % len(children)], signal.SIGKILL)

    def kill(self) -> None:
        """With every process that it started."""
        if self._popen is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._gone()

    def terminate(self, patience: float = DEADLINE_S) -> int:
        """As an operator would."""
        assert self._popen is not None
        self._popen.terminate()
        self._popen.wait(patience)
        return self._gone()

    def _gone(self) -> int:
        assert self._popen is not None
        forget(run_folder(), self._popen.pid)
        code, self._popen = self._popen.wait(), None
        return code


def worker(folder: Path, env: dict[str, str], *arguments: str) -> CeleryProcess:
    options = ("-l", "info", "-c", "2", "--without-gossip", "--without-mingle")
    return CeleryProcess(folder, env, "worker", *options, *arguments, says=" ready.")


def beat(folder: Path, env: dict[str, str]) -> CeleryProcess:
    return CeleryProcess(folder, env, "beat", "-l", "info", says="beat: Starting...")
