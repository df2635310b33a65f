"""RAW: how many messages per second one process gets through a broker with plain calls of a client library.

`n` bodies of 300 bytes are published in batches of 500, each batch confirmed before the next; then all are taken and
acknowledged in batches. Every message is thus published once and consumed once, as each order and each answer of an
orchestration is. Figures: messages per second of each half, and of both one after the other (`per_second`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import driver

BATCH = 500
BODY = b"x" * 300
QUEUE = "raw"
WARM_UP = 2 * BATCH


class Loop(Protocol):
    """A broker that is up, with a queue that is empty."""

    def publish(self, n: int) -> None:
        """Returns once the broker has confirmed all n."""

    def consume(self, n: int) -> None:
        """Returns once n were taken and acknowledged."""


def run(opened: Callable[[Path], AbstractContextManager[Loop]], packages: Sequence[str], server: str) -> None:
    driver.program(["RAW"], opened, measure, packages, [server])


def measure(loop: Loop, workload: str, n: int) -> dict[str, Any]:
    loop.publish(WARM_UP)
    loop.consume(WARM_UP)
    started = time.perf_counter()
    loop.publish(n)
    between = time.perf_counter()
    loop.consume(n)
    ended = time.perf_counter()
    return {
        "workload": workload,
        "messages": n,
        "seconds": ended - started,
        "publish_per_second": n / (between - started),
        "consume_per_second": n / (ended - between),
        "per_second": n / (ended - started),
    }


def batches(n: int) -> list[int]:
    """The sizes of the batches that make n."""
    return [min(BATCH, n - start) for start in range(0, n, BATCH)]
