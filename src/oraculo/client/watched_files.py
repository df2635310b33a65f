"""Tells whether files were renewed while they are in use, as certificates with a short life are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

LOOK_INTERVAL_S = 1.0  # at most so often is the file system asked

Stamp = tuple[int, int, int]


class WatchedFiles:
    """Whether any of some files is another one than when it was read last. A link that leads elsewhere counts."""

    def __init__(self, paths: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = [path for path in paths if path]
        self._clock = clock
        self._read = self._stamps()
        self._look_at = 0.0

    def renew(self, read: Callable[[], None]) -> bool:
        """Call `read` if something has changed, and return whether it was called. When it raises, it is called again
        the next time: a file may have been half written."""
        now = self._clock()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_INTERVAL_S
        found = self._stamps()
        if found == self._read:
            return False
        read()
        self._read = found
        return True

    def _stamps(self) -> list[Stamp | None]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
