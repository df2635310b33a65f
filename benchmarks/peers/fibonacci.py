"""The suite that Windmill publishes of itself and others, for any peer: naive Fibonacci numbers.

Light tasks compute that of 10, long ones that of 33: forty light ones one after another, ten long ones one after
another, and N light ones at once on ten workers. The seconds are from handing in until the client holds the results;
the median of three of each.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

LIGHT_N, LONG_N = 10, 33
LIGHT_TASKS, LONG_TASKS = 40, 10
WORKERS = 10
REPEATS = 3


class FibonacciClient(Protocol):
    """A peer that is up, with ten workers (processes or slots, whatever it has). Both methods return every result."""

    def chain(self, length: int, n: int) -> list[int]:
        """Run so many tasks, each when the one before is done."""

    def fan(self, width: int, n: int) -> list[int]:
        """Run so many tasks at once."""


def fibo(n: int) -> int:
    """As slow as it can be, and the same for everyone."""
    return n if n <= 1 else fibo(n - 1) + fibo(n - 2)


def measured(client: FibonacciClient, workload: str, width: int) -> dict[str, Any]:
    """Warm up, then time the three parts, in turns."""
    client.chain(3, LIGHT_N)
    client.fan(WORKERS * 2, LIGHT_N)
    found: dict[str, list[float]] = {"light_40_s": [], "long_10_s": [], "light_wide_s": []}
    for _ in range(REPEATS):
        found["light_40_s"].append(timed(lambda: client.chain(LIGHT_TASKS, LIGHT_N), LIGHT_TASKS, LIGHT_N))
        found["long_10_s"].append(timed(lambda: client.chain(LONG_TASKS, LONG_N), LONG_TASKS, LONG_N))
        found["light_wide_s"].append(timed(lambda: client.fan(width, LIGHT_N), width, LIGHT_N))
    figures = {name: statistics.median(seconds) for name, seconds in found.items()}
    return {"workload": workload, "width": width, "workers": WORKERS, **figures}


def timed(run: Callable[[], list[int]], count: int, n: int) -> float:
    """The seconds of one part, whose results are checked afterwards."""
    started = time.perf_counter()
    results = run()
    seconds = time.perf_counter() - started
    if results != [NUMBERS[n]] * count:
        raise RuntimeError(f"wrong results: {results[:3]} … ({len(results)})")
    return seconds


NUMBERS = {LIGHT_N: 55, LONG_N: 3_524_578}
