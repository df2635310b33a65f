"""Where new ids come from: orchestration numbers that grow with time, and random correlation ids."""

from __future__ import annotations

import secrets
from datetime import datetime

_SEQUENCE_BITS = 20
_SEQUENCE = 1 << _SEQUENCE_BITS


class RunNumbers:
    """Milliseconds since 1970 and a counter that starts anywhere: unique in this process, unlikely to meet others."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now: datetime) -> int:
        first = int(now.timestamp() * 1000) << _SEQUENCE_BITS
        if first > self._last:
            self._last = first + secrets.randbelow(_SEQUENCE // 2)
        else:
            self._last += 1
        return self._last

    def after(self, run: int) -> None:
        """Only numbers above `run` from now on."""
        self._last = max(self._last, run)


def oldest_run_at(at: datetime) -> int:
    """No orchestration that began at or after `at` has a smaller number."""
    return int(at.timestamp() * 1000) << _SEQUENCE_BITS


def new_correlation_id() -> str:
    """A random UUID (version 4) as text."""
    text = f"{secrets.randbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
