"""Writes the pictures and tables of `docs/performance.md` from recorded runs:

    python -m benchmarks.performance

The newest record of each kind in `benchmarks/results/` is taken: runs of `run.py` by their suite, `*-scaling.json` of
`scaling_model.py`, `*-table.json` of `table.py`. A test holds that the page is what this writes.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import plots, report, table
from benchmarks.plots import number

ROOT = Path(__file__).parents[1]
RESULTS, PAGE, IMAGES = ROOT / "benchmarks/results", ROOT / "docs/performance.md", ROOT / "docs/images"
CHARTS = (
    ("w1", "W1", "per_second", "W1: orchestrations of three collects and an execute, a second", "/s"),
    ("seq", "SEQ", "p50_ms", "SEQ: one such orchestration at a time, p50 (shorter is better)", "ms"),
    ("w2", "W2", "seconds", "W2: one orchestration of 10,000 collects and an execute (shorter is better)", "s"),
)
FIBO_PARTS = ("light_40_s", "long_10_s", "light_wide_s")


def suites() -> dict[str, tuple[str, Any]]:
    """The newest record of each suite, with the name of its file."""
    found: dict[str, tuple[str, Any]] = {}
    for path in sorted(RESULTS.glob("20*.json")):  # what `make bench-peers` leaves there is no record
        record = json.loads(path.read_text())
        steps = record.get("steps", []) if isinstance(record, dict) else []
        told = record.get("suite") != "table" if steps else False  # it has small runs of all suites, for ratios only
        if told and "workload" in steps[0] and any(one["ours"] for one in steps):
            found[record.get("suite", "embedded")] = (path.name, record)
    return found


def newest(ending: str) -> tuple[str, Any]:
    path = sorted(RESULTS.glob(f"20*-{ending}.json"))[-1]
    return path.name, json.loads(path.read_text())


def promises() -> str:
    """What must hold, what is aimed at, and what the newest run of `table.py` saw."""
    if not any(RESULTS.glob("20*-table.json")):
        return table.markdown(table.NOTHING_MEASURED)
    name, record = newest("table")
    return f"{table.markdown(record)}\n\nFrom `benchmarks/results/{name}`."


def medians(record: Mapping[str, Any], workload: str, field: str) -> dict[str, float]:
    """Row → the median of its repeats, slowest first where more is better and the other way round."""
    taken: dict[str, list[float]] = {}
    for step in record["steps"]:
        size = step["size"] == 10_000 if workload == "W2" else True
        if step["workload"] == workload and step["result"] is not None and size:
            taken.setdefault(step["subject"], []).append(step["result"][field])
    return dict(sorted(((row, statistics.median(all_)) for row, all_ in taken.items()), key=lambda one: one[1]))


def peers() -> tuple[dict[str, str], str]:
    """(pictures, text) of the embedded suite, and of Windmill's when there is a record of it."""
    known = suites()
    name, record = known["embedded"]
    pictures, text = {}, [f"From `benchmarks/results/{name}` ({record['date'][:10]}); bars are logarithmic.", ""]
    for short, workload, field, title, unit in CHARTS:
        pictures[f"performance-{short}.svg"] = plots.bars(title, medians(record, workload, field), unit)
        text += [f"![{title}](images/performance-{short}.svg)", ""]
    if "fibo" in known:
        name, record = known["fibo"]
        rows = [[row, *(number(medians(record, "FIBO", part)[row]) for part in FIBO_PARTS)]
                for row in medians(record, "FIBO", FIBO_PARTS[0])]  # fmt: skip
        head = ["Windmill's suite, seconds", "40 light in a row", "10 long in a row", "400 light at once"]
        text += [report.table(head, rows), "", f"From `benchmarks/results/{name}` ({record['date'][:10]}).", ""]
    return pictures, "\n".join(text).rstrip()


def parts() -> str:
    """What one orchestration costs each part."""
    name, record = newest("scaling")
    found = record["parts"]
    rows = [
        ["orchestrator, processor time", f"{found['orchestrator_cpu_ms_each']:.2f} ms"],
        ["workers, processor time", f"{found['worker_cpu_ms_each']:.2f} ms"],
        ["PostgreSQL, processor time", f"{found['database_cpu_ms_each']:.2f} ms"],
        ["Redis, processor time", f"{found['broker_cpu_ms_each']:.2f} ms"],
        ["steps written", f"{found['steps_each']:.1f}"],
        ["messages", f"{found['messages_each']}"],
        ["bytes that PostgreSQL keeps", f"{found['stored_bytes_each']:,}"],
        ["a commit holds the tail of the journal", f"{found['tail_hold_ms']:.2f} ms and "
         f"{found['tail_hold_ms_each_step'] * 1000:.0f} µs a step"],
    ]  # fmt: skip
    busy = found["other_cores"] or 0
    quiet = "a quiet machine" if busy < 0.25 else f"a machine on which others used {busy:.1f} cores meanwhile"
    where = f"{found['machine']['processors']} processors ({found['machine']['model']})"
    source = f"From `benchmarks/results/{name}` ({found['date']}): {where}, {quiet}."
    return f"{report.table(['of one W1 orchestration', ''], rows)}\n\n{source}"


def scaling() -> tuple[dict[str, str], str]:
    """(picture, text) of limits and simulation."""
    _, record = newest("scaling")
    rows = []
    for count, found in record["limits"].items():
        lowest = [f"{number(one['per_second'])} ({one['part']})" for one in found[:2]]
        rows.append([count, *lowest, f"{record['connections'][count]:,}"])
    head = ["replicas", "lowest limit, orchestrations/s", "the next", "connections to PostgreSQL"]
    seen = ["replicas", "offered/s", "done/s", "a step waits, p50", "p99", "steps a commit", "tail busy"]
    played, series = [], dict[str, list[tuple[float, float]]]()
    for one in record["played"]:
        p50, p99 = (one[name] * 1000 for name in ("wait_p50_s", "wait_p99_s"))
        speeds = [number(one["offered"]), number(one["done"])]
        commits = [number(one["steps_a_commit"]), f"{one['tail_busy']:.0%}"]
        played.append([f"{one['replicas']:,}", *speeds, f"{p50:.0f} ms", f"{p99:.0f} ms", *commits])
        series.setdefault(f"{number(one['offered'])}/s offered", []).append((one["replicas"], p50))
    title = "How long a step waits to be durable, by replicas"
    picture = plots.lines(title, series, "replicas on one database", "milliseconds, p50")
    text = [
        report.table(head, rows),
        "The simulation, each at 10, 50 and 80 % of the lowest limit:",
        report.table(seen, played),
        f"![{title}](images/performance-scaling.svg)",
    ]
    return {"performance-scaling.svg": picture}, "\n\n".join(text)


def written() -> dict[Path, str]:
    """Every file that this makes, and what is in it."""
    pictures, text = peers()
    more, grown = scaling()
    page = PAGE.read_text()
    for name, block in (("promises", promises()), ("peers", text), ("parts", parts()), ("scaling", grown)):
        begin, end = f"<!-- figures: {name} -->", f"<!-- end of figures: {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{block}\n{end}{rest.partition(end)[2]}"
    return {PAGE: page, **{IMAGES / name: svg for name, svg in {**pictures, **more}.items()}}


def main() -> None:
    for path, text in written().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
