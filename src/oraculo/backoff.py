"""Exponential back-off: how long to pause before each further attempt."""

from __future__ import annotations

from collections.abc import Iterator


def backoff(first_s: float, max_s: float, factor: float = 2.0) -> Iterator[float]:
    """Yield the seconds to pause before each retry: `first_s`, then `factor` times as long each time, `max_s` at most.

    The iterator never ends. Make a new one after a success, so that the next failure begins with `first_s` again."""
    pause = first_s
    while True:
        yield min(pause, max_s)
        pause = min(pause * factor, max_s)
