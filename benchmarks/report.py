"""Turns recorded steps into tables: medians with their range, and how many times faster Oráculo is.

Also a command: ``python benchmarks/report.py results.json [more.json …]`` prints the tables of recorded runs again.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Step = dict[str, Any]


class Column(NamedTuple):
    title: str
    workload: str
    size: int | None
    """W2's width; None where size does not tell columns apart."""
    field: str
    higher_is_better: bool = False


def columns(steps: Iterable[Step]) -> list[Column]:
    """The columns for which there is something to show."""
    steps = list(steps)
    present = {step["workload"] for step in steps}
    widths = sorted({step["size"] for step in steps if step["workload"] == "W2"})
    made = []
    if "W1" in present:
        made.append(Column("W1 orch/s", "W1", None, "per_second", higher_is_better=True))
    if "SEQ" in present:
        made.append(Column("SEQ p50 ms", "SEQ", None, "p50_ms"))
        made.append(Column("SEQ p99 ms", "SEQ", None, "p99_ms"))
    return made + [Column(f"W2 {width:,} s", "W2", width, "seconds") for width in widths]


def tables(steps: Sequence[Step]) -> str:
    """Everything there is to print, as Markdown."""
    return "\n\n".join(part for part in (figures(steps), loads(steps), ratios(steps), failures(steps)) if part)


def figures(steps: Sequence[Step]) -> str:
    """One row per subject, one column per figure."""
    shown = columns(steps)
    rows = [[label, *(spread(values(steps, label, column)) for column in shown)] for label in labels(steps)]
    return table(["peer", *(column.title for column in shown)], rows)


def loads(steps: Sequence[Step]) -> str:
    """How disturbed each subject's steps were, in cores."""
    rows = []
    for label in labels(steps):
        mine = [step for step in steps if step["subject"] == label]
        known = [[step[field] for step in mine if step[field] is not None] for field in ("steal_cores", "other_cores")]
        rows.append([label, *map(spread, known)])
    return table(["peer", "stolen by the hypervisor, cores", "used by other processes, cores"], rows)


def ratios(steps: Sequence[Step]) -> str:
    """How many times faster each Oráculo row is than each peer, pairing the runs of the same repeat."""
    shown = columns(steps)
    ours = [label for label in labels(steps) if any(s["ours"] and s["result"] for s in steps if s["subject"] == label)]
    rows = []
    for mine in ours:
        for other in labels(steps):
            if other in ours:
                continue
            rows.append([f"{mine} against {other}", *(spread(paired(steps, mine, other, c), "x") for c in shown)])
    return table(["times faster", *(column.title for column in shown)], rows) if rows else ""


def failures(steps: Sequence[Step]) -> str:
    """What has no figure, and why."""
    seen = {(step["subject"], step["workload"], step["size"]): step["error"] for step in steps if step["error"]}
    return "\n".join(f"- no figure: {label}, {workload} {size}: {why}" for (label, workload, size), why in seen.items())


def labels(steps: Iterable[Step]) -> list[str]:
    """Every subject once, in the order given on the command line."""
    orders = {step["subject"]: step["order"] for step in steps}
    return sorted(orders, key=orders.__getitem__)


def values(steps: Iterable[Step], label: str, column: Column) -> list[float]:
    return list(by_repeat(steps, label, column).values())


def by_repeat(steps: Iterable[Step], label: str, column: Column) -> dict[Any, float]:
    return {
        (step.get("run"), step["repeat"]): step["result"][column.field]
        for step in steps
        if step["subject"] == label
        and step["workload"] == column.workload
        and column.size in (None, step["size"])
        and step["result"] is not None
    }


def paired(steps: Sequence[Step], mine: str, other: str, column: Column) -> list[float]:
    """The ratio of the two within each repeat, above 1 where Oráculo is faster."""
    left, right = by_repeat(steps, mine, column), by_repeat(steps, other, column)
    both = [(left[repeat], right[repeat]) for repeat in left if repeat in right]
    return [a / b if column.higher_is_better else b / a for a, b in both]


def spread(numbers: Sequence[float], unit: str = "") -> str:
    """Median and range: "75 (68–76)"."""
    if not numbers:
        return "–"
    middle = f"{number(statistics.median(numbers))}{unit}"
    if len(numbers) == 1:
        return f"{middle} (1 run)"
    return f"{middle} ({number(min(numbers))}–{number(max(numbers))})"


def number(value: float) -> str:
    """As many digits as mean something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def main() -> None:
    steps = []
    for run, path in enumerate(sys.argv[1:]):
        steps += [{**step, "run": run} for step in json.loads(Path(path).read_text())["steps"]]
    print(tables(steps))


if __name__ == "__main__":
    main()
