"""What one orchestration costs each part of an installation, from which its size can be reckoned.

COST runs W1 and takes stock before and after: processor time of the orchestrator, of the workers and of a PostgreSQL on
this machine, transactions and steps, bytes that the store keeps, memory. Nothing of it depends on how busy the
machine is, but for what waits in batches: a busy machine has fewer, larger transactions.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from oraculo.bench.place import Place, Stage, opened
from oraculo.bench.processes import processor_seconds
from oraculo.bench.workloads import Figures, Progress, peak_rss_mib, run_one

COMMITS = "orchestration_commit_steps"


@dataclass(frozen=True, slots=True)
class CostSample:
    """What was used and kept so far; None where this machine cannot tell."""

    at: float
    orchestrator_s: float
    worker_s: float | None
    database_s: float | None
    transactions: float
    steps: float
    bytes: int | None


async def cost(n: int, progress: Progress, place: Place) -> Figures:
    async with opened(place) as stage:
        await asyncio.gather(*(run_one(stage.oraculo) for _ in range(50)))  # warm up
        progress(f"COST: {n} orchestrations at once")
        before = await _taken(stage, place)
        await asyncio.gather(*(run_one(stage.oraculo) for _ in range(n)))
        await stage.oraculo.engine.drained()
        after = await _taken(stage, place)
        return {"workload": "COST", **stage.facts, **_each(before, after, n)}


def _each(before: CostSample, after: CostSample, n: int) -> Figures:
    seconds = after.at - before.at
    rss = peak_rss_mib()
    figures: Figures = {
        "orchestrations": n,
        "per_second": round(n / seconds, 1),
        "cpu_ms_each": round((after.orchestrator_s - before.orchestrator_s) / n * 1000, 4),
        "transactions_each": round((after.transactions - before.transactions) / n, 4),
        "steps_each": round((after.steps - before.steps) / n, 3),
        "rss_mib": rss,
        "per_second_per_mib": round(n / seconds / rss, 2),
    }
    if before.worker_s is not None and after.worker_s is not None:
        figures["worker_cpu_ms_each"] = round((after.worker_s - before.worker_s) / n * 1000, 4)
    if before.database_s is not None and after.database_s is not None:
        figures["database_cpu_ms_each"] = round((after.database_s - before.database_s) / n * 1000, 4)
    if before.bytes is not None and after.bytes is not None:
        figures["stored_bytes_each"] = round((after.bytes - before.bytes) / n)
    return figures


async def _taken(stage: Stage, place: Place) -> CostSample:
    text = stage.oraculo.metrics.exposition().decode()
    database_s, stored = await asyncio.to_thread(_of_postgres, place.store) if place.store else (None, _of_file(stage))
    return CostSample(
        time.perf_counter(),
        time.process_time(),
        stage.worker_cpu(),
        database_s,
        _sample(text, f"{COMMITS}_count"),
        _sample(text, f"{COMMITS}_sum"),
        stored,
    )


def _sample(text: str, name: str) -> float:
    """The value of a series without labels, 0 when it has none yet."""
    for line in text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    return 0.0


def _of_file(stage: Stage) -> int | None:
    """The bytes of the SQLite file and of its log."""
    path = Path(stage.oraculo.settings.store.removeprefix("sqlite:///"))
    parts = [path, path.with_name(f"{path.name}-wal")]
    return sum(part.stat().st_size for part in parts if part.exists()) or None


def _of_postgres(url: str) -> tuple[float | None, int | None]:
    """(seconds that all processes of the server have used, when it runs on this machine, bytes of the database)."""
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as connection:
        row = connection.execute("SELECT pg_backend_pid(), pg_database_size(current_database())").fetchone()
        assert row is not None
        backend, size = row
        server, children = _server_of(backend)
        seconds = [processor_seconds(process) for process in children]
        seconds += [processor_seconds(server, ended_children=True)] if server else []
    known = [one for one in seconds if one is not None]
    return (sum(known) if known else None), int(size)


def _server_of(backend: int) -> tuple[int | None, list[int]]:
    """The server that a backend belongs to, and all processes of it; nothing when it is on another machine."""
    server = _parent_of(backend)
    if server is None:
        return None, []
    entries = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return server, [process for process in entries if _parent_of(process) == server]


def _parent_of(process: int) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
