"""What can be measured: a subject is a command that takes ``--workload W -n N --json`` and prints one JSON object."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
PEER_PYTHON = HERE / ".venv" / "bin" / "python"
ORACULO = "../.venv/bin/oraculo bench"
"""Default of the environment variable ORACULO_CMD; relative to this directory."""


@dataclass(frozen=True)
class Subject:
    """One row of the table."""

    label: str
    command: tuple[str, ...]
    w1: int
    """Orchestrations of W1: enough for 5 to 10 seconds on two cores."""
    quick_w1: int
    widest: int = 10_000
    """Widest W2 that is run by default."""
    widest_slow: int = 10_000
    """Widest W2 that is run with --slow."""
    ours: bool = False

    def missing(self) -> str | None:
        """Why the command cannot be started, or None."""
        program = self.command[0]
        if shutil.which(program) or (HERE / program).exists():
            return None
        if self.ours:
            return f"no {program}; set ORACULO_CMD"
        return "no benchmarks/.venv; run benchmarks/setup.sh"


def peer(label: str, script: str, w1: int, quick_w1: int, *, widest: int = 10_000) -> Subject:
    command = (str(PEER_PYTHON), str(HERE / "peers" / script))
    return Subject(label, command, w1, quick_w1, widest=widest)


def oraculo(label: str = "oraculo", extra: str = "") -> Subject:
    """Oráculo's own benchmark, whose command is named by ORACULO_CMD."""
    command = (*shlex.split(os.environ.get("ORACULO_CMD", ORACULO)), *shlex.split(extra))
    return Subject(label, command, w1=5000, quick_w1=500, ours=True)


PEERS = {
    subject.label: subject
    for subject in (
        peer("celery_redis", "celery_redis.py", 800, 150),
        peer("dramatiq_redis", "dramatiq_redis.py", 3000, 400),
        peer("temporal", "temporal_dev.py", 300, 50, widest=1000),
        peer("dbos_sqlite", "dbos_sqlite.py", 500, 100),
    )
}


def choose(names: Iterable[str], variants: Iterable[str], sizes: Iterable[str]) -> list[Subject]:
    """Subjects by name, with Oráculo's variants ("label=arguments") and W1 sizes ("name=N", or "N" for all) applied."""
    chosen = []
    for name in names:
        if name == "oraculo":
            chosen.append(oraculo())
            chosen += [oraculo(*(part.strip() for part in variant.split("=", 1))) for variant in variants]
        elif name in PEERS:
            chosen.append(PEERS[name])
        else:
            raise SystemExit(f"unknown peer {name!r}; known: {', '.join([*PEERS, 'oraculo'])}")
    for size in sizes:
        name, _, number = size.rpartition("=")
        chosen = [
            replace(subject, w1=int(number), quick_w1=int(number)) if name in ("", subject.label) else subject
            for subject in chosen
        ]
    return chosen
