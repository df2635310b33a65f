"""The table of what is promised to be fast: what must hold, what is aimed at, and what was seen, in one run.

    make bench-table                         on a quiet machine, in 20 minutes; and the table in docs/performance.md
    python -m benchmarks.table --quick       does it work at all?

Every repeat measures all that the table compares, in turns and in reverse order every second time; a ratio is of two
figures of the same repeat. Repeats go on until there are enough or the next one would not end in time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))  # its neighbours are programs, which find each other so

import machine  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
from subjects import ORACULO, SUBJECTS, Subject, varied  # noqa: E402

PYTHON = str(HERE.parent / ".venv" / "bin" / "python")
STEP_TIMEOUT_S = 300.0
LOAD_S, QUICK_LOAD_S = 6, 2
INFLIGHT_N = 10_000

Step = dict[str, Any]
Found = Callable[[str, str, str], float]
"""A figure of one repeat: row, workload, field."""


def over_http(label: str) -> Subject:
    command = (PYTHON, str(HERE / "http_load.py"))
    return Subject(label, command, n=LOAD_S, quick_n=QUICK_LOAD_S, workloads=("SUBMIT", "BATCH", "HEALTH", "OVERLOAD"))


def our_bench(label: str, *workloads: str) -> Subject:
    return Subject(label, tuple(ORACULO.split()), n=INFLIGHT_N, quick_n=500, workloads=workloads, ours=True)


ROWS = {
    **SUBJECTS,
    "oraculo (http)": replace(varied(SUBJECTS["oraculo"], "oraculo (http)", "--http"), n=2000, quick_n=100),
    "wrk": over_http("wrk"),
    "oraculo (open)": our_bench("oraculo (open)", "INFLIGHT"),
}
SIZES = {"oraculo": 5000, "oraculo_rabbitmq": 5000, "celery_redis": 700, "celery_rabbitmq": 500, "dramatiq_redis": 2500,
         "temporal": 250}  # fmt: skip
"""Orchestrations of W1, where they are not those of run.py: a repeat has to be short."""
SEQ_N, QUICK_SEQ_N, WIDTH, QUICK_WIDTH = 100, 10, 10_000, 200
EACH_REPEAT: tuple[tuple[str, str], ...] = (
    *(("W1", row) for row in ("celery_redis", "oraculo", "dramatiq_redis", "oraculo (http)", "temporal",
                              "celery_rabbitmq", "oraculo_rabbitmq")),
    ("SUBMIT", "wrk"),
    ("BATCH", "wrk"),
    ("OVERLOAD", "wrk"),
    ("HEALTH", "wrk"),
    *(("W2", row) for row in ("celery_redis", "oraculo", "oraculo_redis", "celery_rabbitmq", "oraculo_rabbitmq")),
    *(("SEQ", row) for row in ("celery_redis", "oraculo", "oraculo (http)", "oraculo_postgres_redis",
                               "oraculo_celery_redis")),
)  # fmt: skip
ONCE: tuple[tuple[str, str], ...] = (("INFLIGHT", "oraculo (open)"), ("FIBO", "oraculo"))
"""Measured in the first repeat only: the one hardly varies, the other computes for half a minute."""
OBSERVED = ("oraculo (observed)", "OBSERVED")
OBSERVED_ROUNDS, QUICK_OBSERVED_ROUNDS, OBSERVED_N = 60, 3, 400


@dataclass(frozen=True)
class Promise:
    """One line of the table. `more` is better where `more` is true."""

    title: str
    must: float
    goal: float
    value: Callable[[Found], float]
    more: bool = True
    unit: str = ""

    def kept(self, seen: float) -> bool:
        return seen >= self.must if self.more else seen <= self.must

    def reached(self, seen: float) -> bool:
        return seen >= self.goal if self.more else seen <= self.goal


def times(ours: str, theirs: str, workload: str, field: str) -> Callable[[Found], float]:
    """How many times faster `ours` is: by rate for W1, by seconds or milliseconds otherwise."""
    if field == "per_second":
        return lambda found: found(ours, workload, field) / found(theirs, workload, field)
    return lambda found: found(theirs, workload, field) / found(ours, workload, field)


def of_embedded(workload: str) -> Callable[[Found], float]:
    return lambda found: found("wrk", workload, "per_second") / found("oraculo", "W1", "per_second")


PROMISES = (
    Promise("embedded W1 : Celery + Redis", 18, 25, times("oraculo", "celery_redis", "W1", "per_second")),
    Promise("embedded W1 : Temporal", 50, 65, times("oraculo", "temporal", "W1", "per_second")),
    Promise("embedded W1 : Dramatiq", 5, 6.5, times("oraculo", "dramatiq_redis", "W1", "per_second")),
    Promise("W2 10,000 : Celery, embedded", 25, 40, times("oraculo", "celery_redis", "W2", "seconds")),
    Promise("W2 10,000 : Celery, on Redis", 22, 40, times("oraculo_redis", "celery_redis", "W2", "seconds")),
    Promise("W2 10,000 : Celery, on RabbitMQ", 20, 40, times("oraculo_rabbitmq", "celery_rabbitmq", "W2", "seconds")),
    Promise("W1 : Celery, on RabbitMQ", 10, 12, times("oraculo_rabbitmq", "celery_rabbitmq", "W1", "per_second")),
    Promise("HTTP submit (wrk, worker inside) : embedded W1", 0.75, 0.9, of_embedded("SUBMIT")),
    Promise("HTTP batch (wrk, worker inside) : embedded W1", 0.9, 1, of_embedded("BATCH")),
    Promise("Python client over HTTP, W1 : Dramatiq", 2, 3,
            times("oraculo (http)", "dramatiq_redis", "W1", "per_second")),
    Promise("`/health` : empty uvicorn application, same parser", 0.6, 0.8,
            lambda found: found("wrk", "HEALTH", "ratio")),
    Promise("completions under overload : alone", 0.7, 0.9, lambda found: found("wrk", "OVERLOAD", "ratio")),
    Promise("SEQ p50: Celery ÷ ours, SQLite", 5, 7, times("oraculo", "celery_redis", "SEQ", "p50_ms")),
    Promise("SEQ p50: Celery ÷ ours, PostgreSQL + Redis", 2.5, 4,
            times("oraculo_postgres_redis", "celery_redis", "SEQ", "p50_ms")),
    Promise("SEQ p50: Celery ÷ ours, HTTP", 2.5, 4, times("oraculo (http)", "celery_redis", "SEQ", "p50_ms")),
    Promise("SEQ p50: engine `celery` : chord", 1.5, 1,
            times("celery_redis", "oraculo_celery_redis", "SEQ", "p50_ms"), more=False),
    Promise("10,000 in flight, resident", 138, 90, lambda found: found("oraculo (open)", "INFLIGHT", "rss_mib"),
            more=False, unit=" MiB"),
    Promise("metrics and logs on : off, slower by", 5, 3, lambda found: found(*OBSERVED, "slower_percent"),
            more=False, unit=" %"),
    Promise("40 light tasks in a chain, embedded", 0.5, 0.5, lambda found: found("oraculo", "FIBO", "light_40_s"),
            more=False, unit=" s"),
)  # fmt: skip


NOTHING_MEASURED: dict[str, Any] = {"steps": []}


# -- measuring ---------------------------------------------------------------------------------------------------------


def cells(repeat: int, quick: bool) -> Iterator[run.Cell]:
    """What one repeat measures, in the order in which it runs."""
    wanted = list(enumerate([*EACH_REPEAT, *(ONCE if repeat == 1 else ())]))
    for order, (workload, row) in wanted if repeat % 2 else reversed(wanted):
        subject = ROWS[row]
        if reason := subject.missing():
            print(f"skipped: {workload} {row}: {reason}", flush=True)
            continue
        yield run.Cell(repeat, subject, order, workload, size(subject, workload, quick))


def size(subject: Subject, workload: str, quick: bool) -> int:
    if workload == "SEQ":
        return QUICK_SEQ_N if quick else SEQ_N
    if workload == "W2":
        return QUICK_WIDTH if quick else WIDTH
    if workload == "FIBO":
        return int(run.FIBO_WIDTH)
    return int(subject.quick_n if quick else SIZES.get(subject.label, subject.n))


def observed(quick: bool) -> Step:
    """What metrics and logs cost, as a step of the record."""
    watch = machine.Watch()
    rounds = QUICK_OBSERVED_ROUNDS if quick else OBSERVED_ROUNDS
    with tempfile.TemporaryDirectory(prefix="bench-table-") as folder:
        out = Path(folder) / "observed.json"
        command = [PYTHON, str(HERE / "observability.py"), "--rounds", str(rounds), "-n", str(OBSERVED_N)]
        done = subprocess.run([*command, "--json", str(out)], capture_output=True, text=True, check=False)
        row = json.loads(out.read_text())["summary"][1] if done.returncode == 0 else None
    load = watch.stop()
    error = None if row else done.stderr.strip()[-300:]
    label, workload = OBSERVED
    return {"repeat": 1, "subject": label, "ours": True, "order": 99, "workload": workload, "size": rounds,
            "result": row, "error": error, "step_seconds": round(load.seconds, 2),
            "steal_cores": load.steal and round(load.steal, 3),
            "other_cores": load.others and round(load.others, 3)}  # fmt: skip


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """The record, which is written to the file after every step."""
    record: dict[str, Any] = {"date": time.strftime("%Y-%m-%d %H:%M:%S %z"), "suite": "table",
                              "machine": machine.describe(), "versions": {}, "steps": []}  # fmt: skip
    began = time.monotonic()
    repeat, longest = 0, 0.0
    while repeat < options.repeats and time.monotonic() - began + longest < options.minutes * 60:
        repeat, at = repeat + 1, time.monotonic()
        for cell in cells(repeat, options.quick):
            step = run.measure(cell, STEP_TIMEOUT_S)
            print(f"{repeat} {cell.workload:9} {cell.subject.label}: {run.progress(step)}", flush=True)
            record["versions"] |= (step["result"] or {}).pop("versions", {})
            record["steps"].append(step)
            run.keep(options.json, record)
        if repeat == 1:
            record["steps"].append(observed(options.quick))
        longest = max(longest, time.monotonic() - at)
        run.keep(options.json, record)
    return record


# -- the table ---------------------------------------------------------------------------------------------------------


def seen(promise: Promise, steps: Sequence[Step]) -> list[float]:
    """The value in every repeat that has all of its figures."""
    values = []
    for repeat in sorted({step["repeat"] for step in steps}):
        figures = {(step["subject"], step["workload"]): step["result"] for step in steps
                   if step["repeat"] == repeat and step["result"]}  # fmt: skip

        def found(row: str, workload: str, field: str, figures: Any = figures) -> float:
            return float(figures[row, workload][field])

        try:
            values.append(promise.value(found))
        except KeyError:
            continue
    return values


def lines(record: dict[str, Any]) -> list[list[str]]:
    """A row for each promise: what must be, the goal, what was seen, and whether that holds."""
    rows = []
    for promise in PROMISES:
        values = seen(promise, record["steps"])
        shown, verdict = "–", "not measured"
        if values:
            middle = statistics.median(values)
            spread = f" ({report.number(min(values))}–{report.number(max(values))})" if len(values) > 1 else ""
            shown = f"{report.number(middle)}{promise.unit}{spread}"
            verdict = "goal" if promise.reached(middle) else "holds" if promise.kept(middle) else "**no**"
        bound = "≥" if promise.more else "≤"
        limits = [f"{bound} {limit:g}{promise.unit}" for limit in (promise.must, promise.goal)]
        rows.append([promise.title, *limits, shown, verdict])
    return rows


def markdown(record: dict[str, Any]) -> str:
    """The table, and how far to trust it."""
    rows: str = report.table(["", "must", "goal", "seen: median (range)", ""], lines(record))
    if not record["steps"]:
        return rows
    others = [step["other_cores"] for step in record["steps"] if step["other_cores"] is not None]
    about = record["machine"]
    text = [
        rows,
        "",
        f"{record['date'][:16]}, {max(step['repeat'] for step in record['steps'])} repeats in turns; "
        f"{about['processors']} processors ({about['model']}); others used {statistics.median(others or [0]):.2f} "
        f"cores in the median step, {max(others or [0]):.2f} in the worst.",
    ]
    failed = {f"{step['subject']} {step['workload']}: {step['error']}" for step in record["steps"] if step["error"]}
    return "\n".join([*text, *(f"No figure: {one}." for one in sorted(failed))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=19, help="no repeat begins that would end later")
    parser.add_argument("--quick", action="store_true", help="one repeat of small sizes: does it work at all?")
    parser.add_argument("--json", type=Path, help="where to keep the record; rewritten after every step")
    parser.add_argument("--show", type=Path, help="a record to show again, instead of measuring")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
    record = json.loads(options.show.read_text()) if options.show else measured(options)
    print(f"\n{markdown(record)}")


if __name__ == "__main__":
    main()
