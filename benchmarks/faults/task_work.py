"""The work of every peer, and the file in which each performed task leaves a line: what happened, seen from outside.

A line is written after the work, before the peer hears of it, in one write to a file opened for appending. Two lines
for one task are a task that was performed twice.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

LEDGER = "FAULTS_LEDGER"
COLLECTS = 3
COLLECT_S, EXECUTE_S = 0.1, 0.02
CONCURRENCY = 8  # tasks at once, of every peer


def collect(orchestration: str, index: int) -> dict[str, Any]:
    time.sleep(COLLECT_S)
    _performed(f"collect {orchestration} {index}")
    return {"source": f"source-{index}", "value": index}


def execute(orchestration: str, results: list[dict[str, Any]]) -> dict[str, int]:
    time.sleep(EXECUTE_S)
    _performed(f"execute {orchestration} -")
    return {"received": len(results), "total": sum(result["value"] for result in results)}


def is_right(outcome: Any) -> bool:
    """Whether the fan-in saw every collect once."""
    return outcome == {"received": COLLECTS, "total": COLLECTS * (COLLECTS - 1) // 2}


def _performed(line: str) -> None:
    file = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def performed(ledger: Path) -> Counter[tuple[str, str, str]]:
    """(kind, orchestration, index) → how often it was performed."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return Counter((kind, name, index) for kind, name, index in map(str.split, lines))
