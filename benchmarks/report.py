"""Turns recorded runs into Markdown: medians with their range, and how many times faster Oráculo is.

Also a command:

    python benchmarks/report.py redis.json [more.json …]                      prints the sections of recorded runs again
    python benchmarks/report.py --into benchmarks/RESULTS.md redis.json …     puts them into a page

Runs of the same suite are pooled. In a page, a suite's figures stand between two comments and are replaced there; a
suite that the page does not have yet gets a section at its end.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Step = dict[str, Any]
Record = dict[str, Any]

TITLES = {
    "embedded": "Embedded: the in-process broker",
    "redis": "On Redis Streams",
    "rabbitmq": "On RabbitMQ",
    "nats": "On NATS JetStream",
    "kafka": "On Kafka",
    "postgres": "On PostgreSQL and Redis",
    "temporal": "The engine temporal beside a plain Temporal workflow",
    "fibo": "Windmill's suite: light and long tasks in a row, light ones at once",
    "celery": "The engine celery beside Celery's own chord",
}


class Column(NamedTuple):
    title: str
    workload: str
    size: int | None
    """W2's width; None where size does not tell columns apart."""
    field: str
    higher_is_better: bool = False


RAW = [
    Column("published /s", "RAW", None, "publish_per_second", higher_is_better=True),
    Column("consumed /s", "RAW", None, "consume_per_second", higher_is_better=True),
    Column("both /s", "RAW", None, "per_second", higher_is_better=True),
]
MESSAGES = Column("messages /s", "W1", None, "messages_per_second", higher_is_better=True)


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
    if "FIBO" in present:
        made.append(Column("40 light s", "FIBO", None, "light_40_s"))
        made.append(Column("10 long s", "FIBO", None, "long_10_s"))
        made.append(Column("400 light at once s", "FIBO", None, "light_wide_s"))
    return made + [Column(f"W2 {width:,} s", "W2", width, "seconds") for width in widths]


# -- sections ----------------------------------------------------------------------------------------------------------


def section(records: Sequence[Record]) -> str:
    """All that there is to say about runs of one suite."""
    steps = [{**step, "run": run} for run, record in enumerate(records) for step in record["steps"]]
    parts = ("\n".join(facts(record) for record in records), tables(steps))
    return "\n\n".join(part for part in parts if part)


def facts(record: Record) -> str:
    """When, where, what, and how quiet it was."""
    machine, steps = record["machine"], record["steps"]
    sizes = {step["subject"]: step["size"] for step in steps if step["workload"] in ("W1", "RAW")}
    load = [
        f"at most {max(known):.2f} core {what}"
        for what, field in (("stolen", "steal_cores"), ("used by others", "other_cores"))
        if (known := [step[field] for step in steps if step.get(field) is not None])
    ]
    lines = [
        f"{record['date']}, {max((step['repeat'] for step in steps), default=0)} repeats; {', '.join(load)}",
        f"{machine['processors']} processors ({machine['model']}), {machine['memory_gib']} GiB, {machine['system']}, "
        f"Python {machine['python']}",
        ", ".join(f"{name} {version}" for name, version in sorted(record["versions"].items())),
    ]
    if sizes:
        lines.append("N: " + ", ".join(f"{label} {size:,}" for label, size in sizes.items()))
    return "\n".join(f"- {line}" for line in lines)


def tables(steps: Sequence[Step]) -> str:
    """Every table for which there are figures."""
    made = (figures(steps), ratios(steps), messages(steps), loads(steps), failures(steps))
    return "\n\n".join(part for part in made if part)


def figures(steps: Sequence[Step]) -> str:
    """One row per subject that orchestrates, one column per figure."""
    shown = columns(steps)
    rows = [
        [label, *(spread(values(steps, label, column)) for column in shown)]
        for label in labels(steps)
        if not is_raw(steps, label)
    ]
    return table(["median (range)", *(column.title for column in shown)], rows) if rows else ""


def ratios(steps: Sequence[Step]) -> str:
    """How many times faster each Oráculo row is than each peer, pairing the runs of the same repeat."""
    shown, mine = columns(steps), ours(steps)
    others = [label for label in labels(steps) if label not in mine and not is_raw(steps, label)]
    rows = [
        [f"{one} against {other}", *(spread(paired(steps, one, other, column), "x") for column in shown)]
        for one in mine
        for other in others
    ]
    return table(["times faster", *(column.title for column in shown)], rows) if rows else ""


def messages(steps: Sequence[Step]) -> str:
    """What the client library alone gets through this broker, and the share of it that Oráculo's W1 gets."""
    raws = [label for label in labels(steps) if is_raw(steps, label)]
    rows = [[label, *(spread(values(steps, label, column)) for column in RAW), "1"] for label in raws]
    for one in ours(steps):
        for label in raws:
            left, right = by_repeat(steps, one, MESSAGES), by_repeat(steps, label, RAW[-1])
            share = [left[repeat] / right[repeat] for repeat in left if repeat in right]
            rows.append([f"{one}, W1", "–", "–", spread(list(left.values())), spread(share)])
    return table(["messages", *(column.title for column in RAW), "share of raw"], rows) if raws else ""


def loads(steps: Sequence[Step]) -> str:
    """How disturbed each subject's steps were, in cores."""
    rows = []
    for label in labels(steps):
        mine = [step for step in steps if step["subject"] == label]
        known = [[step[field] for step in mine if step[field] is not None] for field in ("steal_cores", "other_cores")]
        rows.append([label, *map(spread, known)])
    return table(["during the steps", "stolen by the hypervisor, cores", "used by other processes, cores"], rows)


def failures(steps: Sequence[Step]) -> str:
    """What has no figure, and why."""
    seen = {(step["subject"], step["workload"], step["size"]): step["error"] for step in steps if step["error"]}
    return "\n".join(f"- no figure: {label}, {workload} {size}: {why}" for (label, workload, size), why in seen.items())


# -- figures -----------------------------------------------------------------------------------------------------------


def labels(steps: Iterable[Step]) -> list[str]:
    """Every subject once, in the order given on the command line."""
    orders = {step["subject"]: step["order"] for step in steps}
    return sorted(orders, key=orders.__getitem__)


def ours(steps: Sequence[Step]) -> list[str]:
    """The rows of Oráculo that have figures."""
    return [label for label in labels(steps) if any(s["ours"] and s["result"] for s in steps if s["subject"] == label)]


def is_raw(steps: Iterable[Step], label: str) -> bool:
    return any(step["subject"] == label and step["workload"] == "RAW" for step in steps)


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
        and column.field in step["result"]
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
    if value >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


# -- the command -------------------------------------------------------------------------------------------------------


def put(page: str, suite: str, text: str) -> str:
    """The page with these figures of the suite in it."""
    begin, end = f"<!-- figures: {suite} -->", f"<!-- end of figures: {suite} -->"
    block = f"{begin}\n{text}\n{end}"
    if begin in page and end in page:
        before, _, rest = page.partition(begin)
        return before + block + rest.partition(end)[2]
    return f"{page.rstrip()}\n\n## {TITLES[suite]}\n\n{block}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The tables of recorded runs.")
    parser.add_argument("--into", type=Path, help="put them into this page instead of printing them")
    parser.add_argument("records", type=Path, nargs="+")
    wanted = parser.parse_args()
    suites: dict[str, list[Record]] = {}
    for path in wanted.records:
        record = json.loads(path.read_text())
        suites.setdefault(record.get("suite", "embedded"), []).append(record)
    if wanted.into is None:
        print("\n\n".join(f"## {TITLES[suite]}\n\n{section(records)}" for suite, records in suites.items()))
        return
    page = wanted.into.read_text()
    for suite, records in suites.items():
        page = put(page, suite, section(records))
    wanted.into.write_text(page)


if __name__ == "__main__":
    main()
