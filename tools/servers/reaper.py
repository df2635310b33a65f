"""Ends the servers of a test run: those of a run that ended, and those of a run that was killed.

A run has a folder. `alive` in it is locked for as long as pytest lives; `processes` holds one file for each server that
runs, named after its process group. `python reaper.py FOLDER` goes to the background, waits for the lock and ends what
is left: nothing outlives a run that could not clean up after itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from pathlib import Path

PATIENCE = 5.0  # seconds that killed processes may take to go


def record(run: Path, pid: int) -> None:
    """This server leads its process group. When it began is kept too: numbers of processes are used again."""
    (run / "processes" / str(pid)).write_text(_stat(pid)[19])


def forget(run: Path, pid: int) -> None:
    (run / "processes" / str(pid)).unlink(missing_ok=True)


def reap(run: Path) -> None:
    """Every recorded server is killed, and the folder is removed."""
    groups = []
    for file in (run / "processes").glob("[0-9]*"):
        group = int(file.name)
        if _stat(group)[19] in ("", file.read_text()):
            groups.append(group)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while any(_stat(group)[0] not in ("", "Z") for group in groups) and time.monotonic() < until:
        time.sleep(0.01)
    shutil.rmtree(run, ignore_errors=True)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty ones when there is no such process, or no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return [""] * 50


def main(run: Path) -> None:
    if os.fork():
        os._exit(0)  # the parent need not wait for the child that stays
    os.setsid()
    with contextlib.suppress(FileNotFoundError), open(run / "alive") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
    reap(run)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
