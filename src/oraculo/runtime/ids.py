"""Where new ids come from: orchestration numbers that grow with time, and random correlation ids."""

from __future__ import annotations

import secrets
from datetime import datetime

_NODE_BITS = 10
_SEQUENCE_BITS = 10
_LOW_BITS = _NODE_BITS + _SEQUENCE_BITS
_SEQUENCE = 1 << _SEQUENCE_BITS


class RunNumbers:
    """Milliseconds since 1970, the number of the process among those that share a store (`node`), and a counter."""

    def __init__(self, node: int = 0) -> None:
        self.node = node
        self._last = (0, 0)  # milliseconds, counter

    def next(self, now: datetime) -> int:
        instant, sequence = int(now.timestamp() * 1000), 0
        if instant <= self._last[0]:
            instant, sequence = self._last[0], self._last[1] + 1
            if sequence == _SEQUENCE:
                instant, sequence = instant + 1, 0
        self._last = instant, sequence
        return instant << _LOW_BITS | self.node << _SEQUENCE_BITS | sequence


def oldest_run_at(at: datetime) -> int:
    """No orchestration that began at or after `at` has a smaller number."""
    return int(at.timestamp() * 1000) << _LOW_BITS


def new_correlation_id() -> str:
    """A random UUID (version 4) as text."""
    text = f"{secrets.randbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
