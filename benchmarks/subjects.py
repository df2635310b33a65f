"""What can be measured: a subject is a command that takes ``--workload W -n N --json`` and prints one JSON object."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
PEER_PYTHON = HERE / ".venv" / "bin" / "python"
BESIDE = HERE / "peers" / "brokers.py"
"""Runs a command beside a fresh server."""
ORACULO = "../.venv/bin/oraculo bench"
"""Default of the environment variable ORACULO_CMD; relative to this directory."""
ORCHESTRATIONS = ("W1", "SEQ", "W2")
FIBO = ("FIBO",)


@dataclass(frozen=True)
class Subject:
    """One row of the table."""

    label: str
    command: tuple[str, ...]
    n: int
    """Orchestrations of W1, or messages of RAW: enough for 5 to 10 seconds on two cores."""
    quick_n: int
    workloads: tuple[str, ...] = ORCHESTRATIONS
    servers: tuple[str, ...] = ()
    """Brokers of `tools/servers/` that the command starts."""
    widest: int = 10_000
    """Widest W2 that is run by default."""
    widest_slow: int = 10_000
    """Widest W2 that is run with --slow."""
    ours: bool = False

    def missing(self) -> str | None:
        """Why the command cannot be started, or None."""
        program = self.command[0]
        if not shutil.which(program) and not (HERE / program).exists():
            return "no benchmarks/.venv; run benchmarks/setup.sh" if program == str(PEER_PYTHON) else f"no {program}"
        if self.ours and not shutil.which(oraculo_command()[0]) and not (HERE / oraculo_command()[0]).exists():
            return f"no {oraculo_command()[0]}; set ORACULO_CMD"
        return next((reason for reason in map(server_missing, self.servers) if reason), None)


@functools.cache
def server_missing(name: str) -> str | None:
    """Asks the Python that would start the server, since some servers come with its packages."""
    asked = subprocess.run([PEER_PYTHON, BESIDE, name], capture_output=True, text=True, check=False)
    return None if asked.returncode == 0 else (asked.stdout or asked.stderr).strip().rpartition("\n")[2]


def peer(label: str, n: int, quick_n: int, *servers: str, script: str = "", widest: int = 10_000) -> Subject:
    command = (str(PEER_PYTHON), str(HERE / "peers" / (script or f"{label}.py")))
    return Subject(label, command, n, quick_n, servers=servers, widest=widest)


def fibo(label: str, *servers: str) -> Subject:
    """A peer of the suite that Windmill publishes, which is a program of its own."""
    command = (str(PEER_PYTHON), str(HERE / "peers" / f"{label}.py"))
    return Subject(label, command, n=400, quick_n=400, workloads=FIBO, servers=servers)


def raw(broker: str, n: int) -> Subject:
    """The client library's own loop, without any orchestration."""
    label = f"raw_{broker}"
    command = (str(PEER_PYTHON), str(HERE / "peers" / f"{label}.py"))
    return Subject(label, command, n, quick_n=5000, workloads=("RAW",), servers=(broker,))


def oraculo_command() -> list[str]:
    """Oráculo's own benchmark, whose command is named by ORACULO_CMD."""
    return shlex.split(os.environ.get("ORACULO_CMD", ORACULO))


def oraculo(broker: str = "", n: int = 5000) -> Subject:
    """On a fresh server of that broker, with the worker in another process; without one, embedded in one process."""
    if not broker:
        command = tuple(oraculo_command())
        return Subject("oraculo", command, n, quick_n=500, workloads=(*ORCHESTRATIONS, *FIBO), ours=True)
    beside = (str(PEER_PYTHON), str(BESIDE), broker, *oraculo_command(), "--broker", "{url}")
    workloads = (*ORCHESTRATIONS, *FIBO)
    return Subject(f"oraculo_{broker}", beside, n, quick_n=500, workloads=workloads, servers=(broker,), ours=True)


def on_postgres(broker: str, n: int, engine: str = "local") -> Subject:
    """The journal in a fresh PostgreSQL; with the engine `celery`, a Celery worker of two processes beside it."""
    servers = (broker, "postgres")
    beside = (str(PEER_PYTHON), str(BESIDE), ",".join(servers), *oraculo_command(), "--broker", "{url}")
    beside += ("--store", "{postgres}", "--engine", engine)
    label = f"oraculo_celery_{broker}" if engine == "celery" else f"oraculo_postgres_{broker}"
    return Subject(label, beside, n, quick_n=300, servers=servers, ours=True)


def on_temporal(n: int) -> Subject:
    """The engine `temporal` with a fresh server, broker and workers in the same process."""
    beside = (str(PEER_PYTHON), str(BESIDE), "temporal", *oraculo_command())
    beside += ("--engine", "temporal", "--temporal", "{temporal}")
    return Subject("oraculo_temporal", beside, n, quick_n=50, servers=("temporal",), ours=True)


SUBJECTS = {
    subject.label: subject
    for subject in (
        peer("celery_redis", 800, 150, "redis"),
        peer("celery_rabbitmq", 600, 150, "rabbitmq", "redis"),
        peer("dramatiq_redis", 3000, 400, "redis"),
        peer("dramatiq_rabbitmq", 2000, 300, "rabbitmq", "redis"),
        peer("faststream_redis", 2000, 300, "redis"),
        peer("faststream_rabbitmq", 1500, 300, "rabbitmq"),
        peer("faststream_nats", 2000, 300, "nats"),
        peer("faststream_kafka", 2000, 300, "kafka"),
        peer("temporal", 300, 50, script="temporal_dev.py", widest=1000),
        peer("temporal_signals", 300, 50, "temporal", widest=5000),
        peer("dbos_sqlite", 500, 100),
        fibo("celery_fibo", "redis"),
        fibo("temporal_fibo"),
        fibo("prefect_fibo"),
        peer("dbos_postgres", 500, 100, "postgres"),
        raw("redis", 200_000),
        raw("rabbitmq", 50_000),
        raw("nats", 80_000),
        raw("kafka", 100_000),
        oraculo(),
        oraculo("redis", 10_000),
        oraculo("rabbitmq", 8000),
        oraculo("nats", 8000),
        oraculo("kafka", 8000),
        on_postgres("redis", 5000),
        on_postgres("redis", 2000, "celery"),
        on_postgres("rabbitmq", 2000, "celery"),
        on_temporal(500),
    )
}

SUITES = {
    "embedded": ["celery_redis", "dramatiq_redis", "temporal", "dbos_sqlite", "oraculo"],
    "redis": ["celery_redis", "dramatiq_redis", "faststream_redis", "raw_redis", "oraculo_redis"],
    "rabbitmq": ["celery_rabbitmq", "dramatiq_rabbitmq", "faststream_rabbitmq", "raw_rabbitmq", "oraculo_rabbitmq"],
    "nats": ["faststream_nats", "raw_nats", "oraculo_nats"],
    "kafka": ["faststream_kafka", "raw_kafka", "oraculo_kafka"],
    "postgres": ["celery_redis", "dbos_postgres", "oraculo_postgres_redis"],
    "temporal": ["temporal_signals", "oraculo_temporal", "oraculo"],
    "fibo": ["celery_fibo", "temporal_fibo", "prefect_fibo", "oraculo", "oraculo_redis"],
    "celery": ["celery_rabbitmq", "oraculo_celery_rabbitmq", "celery_redis", "oraculo_celery_redis"],
}
"""Who is measured beside whom. The rows of a broker's suite all run on that broker; `embedded` needs no broker for
Oráculo, and shows it beside peers of every kind. `postgres` has Oráculo's journal in PostgreSQL; `celery` puts the
engine `celery` beside Celery's own chord, each with two Celery processes; `temporal` the engine `temporal` beside a
plain workflow that publishes each task in an activity and waits for its answer as a signal."""

WORKLOADS = {"fibo": list(FIBO)}
"""What a suite measures where it is not the usual."""
WIDTHS = {"temporal": (1000, 5000)}
"""Widths of W2 where they are not the usual ones."""


def choose(names: Iterable[str], variants: Iterable[str], sizes: Iterable[str]) -> list[Subject]:
    """Subjects by name, with variants of each Oráculo row ("label=arguments") and sizes ("name=N", or "N" for every W1)
    applied."""
    chosen: list[Subject] = []
    for name in names:
        if name not in SUBJECTS:
            raise SystemExit(f"unknown peer {name!r}; known: {', '.join(SUBJECTS)}")
        subject = SUBJECTS[name]
        chosen.append(subject)
        if subject.ours:
            chosen += [varied(subject, *variant.split("=", 1)) for variant in variants]
    for size in sizes:
        name, _, number = size.rpartition("=")
        chosen = [
            replace(subject, n=int(number), quick_n=int(number))
            if name == subject.label or (not name and "W1" in subject.workloads)
            else subject
            for subject in chosen
        ]
    return chosen


def varied(subject: Subject, label: str, extra: str) -> Subject:
    return replace(subject, label=label.strip(), command=(*subject.command, *shlex.split(extra)))
