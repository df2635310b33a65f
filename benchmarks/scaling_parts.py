"""What one orchestration costs each part of an installation, measured: the input of `scaling_model.py`.

    python -m benchmarks.scaling_parts --json benchmarks/results/2026-11-18-parts.json [-n 2000]

PostgreSQL and Redis are started for it. Processor time comes from `oraculo bench --workload COST` and from Redis
itself; how long a commit holds the tail of the journal is measured with the statements that a commit ends with, on rows
that the benchmark left, the quickest of many tries. So a busy machine changes little, and is named in the record.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import redis
from benchmarks import machine
from tools.servers.postgres import Postgres
from tools.servers.redis import Redis

from oraculo.bench.workloads import MESSAGES_PER_RUN

TRIES = 60
ROWS = (1, 8, 64, 512)
COPIED = "CREATE TEMP TABLE copied AS SELECT row_number() OVER () AS n, at, events, format FROM journal LIMIT %s"
INSERT = (
    "INSERT INTO journal (run, first, at, events, format) "
    "SELECT %s::bigint + n, 1, at, events, format FROM copied WHERE n <= %s"
)
_runs = itertools.count(2**61, 2**20)  # of no orchestration


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what one orchestration costs each part.")
    parser.add_argument("-n", type=int, default=2000, help="orchestrations")
    parser.add_argument("--json", type=Path, required=True)
    wanted = parser.parse_args()
    found = measured(wanted.n)
    wanted.json.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def measured(n: int) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oraculo-parts-")))
        folder.chmod(0o755)
        postgres = stack.enter_context(Postgres(folder / "postgres"))
        broker = stack.enter_context(Redis(folder / "redis"))
        client = stack.enter_context(redis.Redis.from_url(broker.url))
        watch, before = machine.Watch(), broker_seconds(client)
        command = [sys.executable, "-m", "oraculo", "bench", "--broker", broker.url, "--store", postgres.url]
        done = subprocess.run(
            [*command, "--workload", "COST", "-n", str(n), "--json"], stdout=subprocess.PIPE, text=True, check=True
        )
        load = watch.stop()
        cost = json.loads(done.stdout)
        spent = broker_seconds(client) - before
        fixed, each = tail_hold(postgres.url)
        return {
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine.describe(),
            "other_cores": None if load.others is None else round(load.others, 2),
            "versions": cost["versions"],
            "orchestrations": n,
            "messages_each": MESSAGES_PER_RUN,
            "steps_each": cost["steps_each"],
            "orchestrator_cpu_ms_each": cost["cpu_ms_each"],
            "worker_cpu_ms_each": cost["worker_cpu_ms_each"],
            "database_cpu_ms_each": cost["database_cpu_ms_each"],
            "broker_cpu_ms_each": round(spent / n * 1000, 4),
            "stored_bytes_each": cost["stored_bytes_each"],
            "tail_hold_ms": round(fixed, 4),
            "tail_hold_ms_each_step": round(each, 5),
        }


def broker_seconds(client: Any) -> float:
    """The processor time of Redis so far."""
    used = client.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])


def tail_hold(url: str) -> tuple[float, float]:
    """Milliseconds that a commit holds the tail of the journal: (however small it is, for each of its steps)."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(COPIED.replace("%s", str(max(ROWS))))
        best = {count: min(held(connection, count) for _ in range(TRIES)) for count in ROWS}
    line = statistics.linear_regression(list(best), [seconds * 1000 for seconds in best.values()])
    return max(0.0, line.intercept), line.slope


def held(connection: Any, count: int) -> float:
    """The seconds from having the lock to having committed so many rows, in one exchange with the server."""
    connection.execute("BEGIN")
    connection.execute("SELECT pg_advisory_xact_lock(1, 1)")
    started = time.perf_counter()
    with connection.pipeline():
        connection.execute(INSERT, (next(_runs), count), prepare=True)
        connection.execute("SELECT pg_notify('oraculo', '')", prepare=True)
        connection.execute("COMMIT")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
