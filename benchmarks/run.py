"""Measures Oráculo and its peers in one run, alternating, on one machine. See README.md.

    python benchmarks/run.py --quick
    python benchmarks/run.py --suite redis --json redis.json
    python benchmarks/run.py --peers celery_redis,oraculo --workloads W1,SEQ --repeats 3 --json out.json

Needs only the standard library. Each peer runs in benchmarks/.venv as its own program, which starts and stops its
servers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import report
from subjects import HERE, SUITES, WIDTHS, WORKLOADS, Subject, choose

FIELDS = {
    "W1": ("per_second",),
    "RAW": ("per_second", "publish_per_second", "consume_per_second"),
    "SEQ": ("p50_ms", "p99_ms"),
    "W2": ("seconds",),
    "FIBO": ("light_40_s", "long_10_s", "light_wide_s"),
    "SUBMIT": ("per_second", "accepted_per_second"),
    "BATCH": ("per_second", "accepted_per_second"),
    "HEALTH": ("per_second", "empty_per_second", "ratio"),
    "OVERLOAD": ("per_second", "alone_per_second", "ratio"),
    "INFLIGHT": ("rss_mib",),
}
UNITS = {
    "per_second": "/s",
    "p50_ms": "ms p50",
    "p99_ms": "ms p99",
    "seconds": "s",
    "light_40_s": "s light",
    "long_10_s": "s long",
    "light_wide_s": "s wide",
}
FIBO_WIDTH = 400
"""Light tasks at once in the suite that Windmill publishes."""
USUAL_WORKLOADS = ["W1", "RAW", "SEQ", "W2"]
USUAL_WIDTHS = (1000, 10_000)
MARK = "BENCH_STEP"
"""A variable in the environment of everything that a step starts."""
OTHERS_NOTED = 0.25
"""Cores used by other processes from which a figure is marked as disturbed."""


class StepFailed(Exception):
    """The command gave no usable figure; the text says why."""


@dataclass(frozen=True)
class Cell:
    """One measurement to make."""

    repeat: int
    subject: Subject
    order: int
    workload: str
    size: int


def plan(subjects: list[Subject], wanted: argparse.Namespace) -> Iterator[Cell]:
    """All cells in the order they run: subjects take turns inside every workload, in reverse in every second repeat."""
    for repeat in range(1, wanted.repeats + 1):
        turns = list(enumerate(subjects))
        if repeat % 2 == 0:
            turns.reverse()
        for workload in wanted.workloads:
            for width in wanted.widths if workload == "W2" else [0]:
                for order, subject in turns:
                    size = size_of(subject, workload, width, wanted)
                    if size is not None:
                        yield Cell(repeat, subject, order, workload, size)


def size_of(subject: Subject, workload: str, width: int, wanted: argparse.Namespace) -> int | None:
    """What `-n` is for this subject; None when it does not take part."""
    if workload not in subject.workloads:
        return None
    if workload == "W2":
        return width if width <= (subject.widest_slow if wanted.slow else subject.widest) else None
    if workload == "FIBO":
        return FIBO_WIDTH
    if workload == "SEQ":
        return int(wanted.seq)
    return subject.quick_n if wanted.quick else subject.n


def run_command(cell: Cell, timeout: float) -> dict[str, Any]:
    """Run one cell's command and return the JSON object it printed. Leaves no process and no file behind."""
    command = [*cell.subject.command, "--workload", cell.workload, "-n", str(cell.size), "--json"]
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="bench-run-") as directory:
        out, err = Path(directory, "stdout"), Path(directory, "stderr")
        with out.open("w") as stdout, err.open("w") as stderr:
            try:
                running = subprocess.Popen(
                    command,
                    cwd=HERE,
                    env=os.environ | {"TMPDIR": directory, MARK: mark},
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise StepFailed(f"cannot start: {error.strerror}") from error
            try:
                code = running.wait(timeout)
            except subprocess.TimeoutExpired:
                raise StepFailed(f"took more than {timeout:.0f} s") from None
            finally:
                end_group(running)
                end_marked(mark)
        if code != 0:
            raise StepFailed(f"exit status {code}: {last_line(err) or last_line(out) or 'no output'}")
        return parse(out.read_text(errors="replace"), cell.workload)


def end_group(running: subprocess.Popen) -> None:
    """Stop whatever is left of a command that we started in its own process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(running.pid, number)
        except ProcessLookupError:
            break
        try:
            running.wait(20 if number == signal.SIGTERM else None)
        except subprocess.TimeoutExpired:
            continue


def end_marked(mark: str) -> None:
    """Kill what the step started in process groups of their own (servers) and did not live to stop itself."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in environment.read_bytes().split(b"\0"):
                os.kill(int(environment.parent.name), signal.SIGKILL)


def last_line(path: Path) -> str:
    """The last line of a file, which is where a traceback says what happened."""
    text = path.read_text(errors="replace").strip()
    return text.splitlines()[-1].strip()[:300] if text else ""


def parse(text: str, workload: str) -> dict[str, Any]:
    """The JSON object in a command's output: all of it, or else its last line."""
    for candidate in (text, text.strip().rpartition("\n")[2]):
        try:
            result = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(result, dict) and all(isinstance(result.get(field), int | float) for field in FIELDS[workload]):
            return result
    raise StepFailed(f"no JSON object with {', '.join(FIELDS[workload])} on stdout")


def measure(cell: Cell, timeout: float) -> dict[str, Any]:
    """One step of the record: the figure or the failure, and what the machine was doing meanwhile."""
    watch = machine.Watch()
    result, error = None, None
    try:
        result = run_command(cell, timeout)
    except StepFailed as failed:
        error = str(failed)
    load = watch.stop()
    return {
        "repeat": cell.repeat,
        "subject": cell.subject.label,
        "ours": cell.subject.ours,
        "order": cell.order,
        "workload": cell.workload,
        "size": cell.size,
        "result": result,
        "error": error,
        "step_seconds": round(load.seconds, 2),
        "steal_cores": None if load.steal is None else round(load.steal, 3),
        "other_cores": None if load.others is None else round(load.others, 3),
    }


def progress(step: dict[str, Any]) -> str:
    """A step in one line."""
    if step["error"]:
        return f"no figure: {step['error']}"
    result = step["result"]
    text = ", ".join(f"{report.number(result[field])} {UNITS.get(field, field)}" for field in FIELDS[step["workload"]])
    if step["other_cores"] is None:
        return text
    noisy = " DISTURBED" if step["other_cores"] > OTHERS_NOTED else ""
    return (
        f"{text} (step {step['step_seconds']:.0f} s, steal {step['steal_cores']:.2f}, "
        f"others {step['other_cores']:.2f} cores{noisy})"
    )


def names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Oráculo and its peers in one run, alternating.")
    parser.add_argument("--suite", choices=SUITES, default="embedded", help="on which broker; default: embedded")
    parser.add_argument("--peers", type=names, default=None, help="who, separated by commas; default: all of the suite")
    parser.add_argument("--workloads", type=names, default=None, help=", ".join(FIELDS))
    parser.add_argument("--repeats", type=int, default=None, help="default 3; 1 with --quick")
    parser.add_argument(
        "--n", action="append", default=[], metavar="[PEER=]N", help="orchestrations of W1; messages of RAW"
    )
    parser.add_argument("--seq", type=int, default=None, help="orchestrations of SEQ; default 100")
    parser.add_argument("--widths", type=names, default=None, help="widths of W2; default 1000,10000")
    parser.add_argument("--slow", action="store_true", help="W2 10,000 for Temporal too: minutes")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repeat: does it work at all?")
    parser.add_argument("--variant", action="append", default=[], metavar="LABEL=ARGS", help="another oraculo row")
    parser.add_argument("--quiet-wait", type=float, default=0, help="seconds to wait for other load to end, per step")
    parser.add_argument("--timeout", type=float, default=400, help="seconds per step")
    parser.add_argument("--json", type=Path, help="where to keep the record; rewritten after every step")
    wanted = parser.parse_args()
    wanted.workloads = wanted.workloads or WORKLOADS.get(wanted.suite, USUAL_WORKLOADS)
    if unknown := set(wanted.workloads) - set(FIELDS):
        parser.error(f"unknown workload: {', '.join(sorted(unknown))}")
    wanted.peers = wanted.peers or SUITES[wanted.suite]
    wanted.repeats = wanted.repeats or (1 if wanted.quick else 3)
    wanted.seq = wanted.seq or (20 if wanted.quick else 100)
    wanted.widths = [
        int(width) for width in wanted.widths or ([200] if wanted.quick else WIDTHS.get(wanted.suite, USUAL_WIDTHS))
    ]
    return wanted


def available(subjects: list[Subject]) -> list[Subject]:
    """The subjects that can be started; says which cannot."""
    ready = []
    for subject in subjects:
        if reason := subject.missing():
            print(f"skipped: {subject.label}: {reason}", flush=True)
        else:
            ready.append(subject)
    return ready


def keep(path: Path | None, record: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    wanted = arguments()
    cells = list(plan(available(choose(wanted.peers, wanted.variant, wanted.n)), wanted))
    record: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "suite": wanted.suite,
        "arguments": {name: value for name, value in vars(wanted).items() if name != "json"},
        "machine": machine.describe(),
        "versions": {},
        "steps": [],
    }
    broken = set()
    for count, cell in enumerate(cells, 1):
        what = f"[{count}/{len(cells)}] repeat {cell.repeat} {cell.workload} {cell.size} {cell.subject.label}"
        if (cell.subject.label, cell.workload, cell.size) in broken:
            print(f"{what}: skipped, it failed before", flush=True)
            continue
        machine.wait_for_quiet(OTHERS_NOTED, wanted.quiet_wait)
        step = measure(cell, wanted.timeout)
        print(f"{what}: {progress(step)}", flush=True)
        if step["error"]:
            broken.add((cell.subject.label, cell.workload, cell.size))
        else:
            record["versions"] |= step["result"].pop("versions", {})
        record["steps"].append(step)
        keep(wanted.json, record)
    if record["steps"]:
        print(f"\n{report.section([record])}")


if __name__ == "__main__":
    main()
