"""`oraculo prove`: the proof, run on the user's own machine.

Every seed makes a world of each kind: the core alone, and the whole engine with one broker or two, tokens, a ceiling,
requests that exist once or several replicas, each masked (retries and deadlines on) and unmasked (nothing can hide a
loss). The report names the versions and one hash over all traces, so two machines can compare.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import apsw
import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import oraculo
from oraculo.simulation import mutants
from oraculo.simulation.ledger import WorldLedger
from oraculo.simulation.run import CORE_KINDS, KINDS, Summary, run_many, run_world

T = TypeVar("T")


class Worlds(StrEnum):
    ALL = "all"
    CORE = "core"
    ENGINE = "engine"


SHOWN = (
    ("orchestrations", "orchestrations accepted"),
    ("lives", "lives of the orchestrator"),
    ("crashes", "crashes"),
    ("graceful stops", "graceful stops"),
    ("freezes", "replicas frozen"),
    ("takeovers", "takeovers from dead replicas"),
    ("commits", "commits"),
    ("events", "events"),
    ("store downs", "store failures"),
    ("commits in doubt", "commits in doubt"),
    ("broker downs", "broker outages"),
    ("clock jumps", "wall clock jumps"),
    ("published", "messages published"),
    ("orders under a ceiling", "orders that had to wait for their place"),
    ("requests merged", "requests that exist once merged into another's run"),
    ("tickets given by choice", "tickets given to a worker by choice"),
    ("received", "messages received"),
    ("lost", "messages lost by a broker"),
    ("confirms lost", "confirmations lost"),
    ("duplicated", "messages duplicated"),
    ("delayed", "messages delayed"),
    ("redelivered", "messages redelivered"),
    ("duplicate", "answers counted as duplicates"),
    ("late", "late answers kept"),
    ("conflicting_answer", "conflicting answers kept"),
    ("quarantined", "messages quarantined"),
    ("steps", "steps of the core alone"),
)


def command(
    seeds: Annotated[int, typer.Option(help="How many seeds; each makes a world of each kind.", min=1)] = 2000,
    first: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    masked: Annotated[
        bool | None,
        typer.Option("--masked/--unmasked", help="Only with retries and deadlines, or only without; both by default."),
    ] = None,
    worlds: Annotated[Worlds, typer.Option(help="The core alone, the whole engine, or all.")] = Worlds.ALL,
    jobs: Annotated[int | None, typer.Option(help="Processes; one per processor by default.", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Replay this one and show everything that happens.", min=0)] = None,
    zoo: Annotated[bool, typer.Option("--mutants", help="Show that every broken variant is noticed.")] = False,
    state: Annotated[
        Path | None,
        typer.Option(help="Write down each part in this file as it ends; what is in it is not run again."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Run thousands of simulated worlds full of crashes and faults, and check every promise at every step.

    Example: oraculo prove --seeds 10000 --jobs 4 --state worlds.jsonl
    """
    kinds = chosen(masked, worlds)
    if seed is not None:
        raise typer.Exit(_replay(kinds, seed, as_json))
    if zoo:
        raise typer.Exit(_zoo(as_json))
    began = time.perf_counter()
    processes = jobs or os.cpu_count() or 1
    wanted = [(kind, number) for number in range(first, first + seeds) for kind in kinds]
    if state is None:
        total = _run(len(wanted), partial(run_many, wanted, processes), quiet=as_json)
        report = document(total, kinds, seeds, first, time.perf_counter() - began)
    else:
        ledger = WorldLedger(state, kinds)
        _run(len(wanted), partial(ledger.run, first, seeds, processes), quiet=as_json)
        report = ledger_document(ledger)
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(report) + b"\n")
    else:
        _print(report)
    raise typer.Exit(1 if report["violations"] else 0)


def chosen(masked: bool | None, worlds: Worlds) -> list[str]:
    kinds = [kind for kind in KINDS if worlds is Worlds.ALL or (kind in CORE_KINDS) is (worlds is Worlds.CORE)]
    return [kind for kind in kinds if masked is None or kind.endswith("unmasked") is not masked]


def _run(worlds: int, run: Callable[[Callable[[Summary], None] | None], T], quiet: bool) -> T:
    """Run with a bar on a terminal. `run` tells the function that it is given of each part."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        return run(None)
    columns = (
        TextColumn("worlds"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[bad]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=worlds, bad="")
        bad = 0

        def show(part: Summary) -> None:
            nonlocal bad
            bad += len(part.failures)
            progress.update(bar, advance=part.worlds, bad=f"[red]{bad} violated[/]" if bad else "")

        return run(show)


def versions() -> dict[str, str]:
    return {
        "oraculo": oraculo.__version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "platform": platform.platform(),
    }


def document(total: Summary, kinds: list[str], seeds: int, first: int, took: float) -> dict[str, Any]:
    return {
        "versions": versions(),
        "seeds": seeds,
        "first": first,
        "kinds": kinds,
        "worlds": total.worlds,
        "virtual_hours": round(total.virtual_s / 3600, 2),
        "tally": dict(sorted(total.tally.items())),
        "violations": [
            _violated(kind, seed, [str(violation) for violation in violations])
            for kind, seed, violations in total.failures
        ],
        "trace": total.trace,
        "seconds": round(took, 2),
        "worlds_per_second": round(total.worlds / took, 1),
    }


def ledger_document(ledger: WorldLedger) -> dict[str, Any]:
    """The report on everything that the file holds of this code; its seconds are those of processors."""
    whole = ledger.document()
    spent = whole.pop("processor_s")
    return {
        "versions": versions(),
        **whole,
        "virtual_hours": round(whole.pop("virtual_s") / 3600, 2),
        "violations": [_violated(*one) for one in whole["violations"]],
        "seconds": spent,
        "worlds_per_second": round(whole["worlds"] / spent, 1) if spent else 0.0,
    }


def _violated(kind: str, seed: int, violations: list[str]) -> dict[str, Any]:
    return {"kind": kind, "seed": seed, "violations": violations, "replay": replay_command(kind, seed)}


def replay_command(kind: str, seed: int) -> str:
    mode = "--unmasked" if kind.endswith("unmasked") else "--masked"
    return f"oraculo prove --seed {seed} {mode} --worlds {'core' if kind in CORE_KINDS else 'engine'}"


def _print(report: dict[str, Any]) -> None:
    console = Console()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    table.add_row(f"{report['worlds']:,}", f"worlds ({report['seeds']:,} seeds: {', '.join(report['kinds'])})")
    table.add_row(f"{report['virtual_hours']:,.2f}", "virtual hours")
    for key, label in SHOWN:
        if report["tally"].get(key):
            table.add_row(f"{report['tally'][key]:,}", label)
    bad = len(report["violations"])
    table.add_row(f"[{'red' if bad else 'green'}]{bad}[/]", "worlds with a violation")
    console.print(table)
    console.print(verdict(report), style="bold red" if bad else "bold green", highlight=False, soft_wrap=True)
    for one in report["violations"][:20]:
        console.print(f"\n[red]{one['kind']} {one['seed']}[/]: {one['violations'][0]}", highlight=False)
        console.print(f"  replay: {one['replay']}", highlight=False, soft_wrap=True)
    named = report["versions"]
    console.print(
        f"\noraculo {named['oraculo']} · python {named['python']} · sqlite {named['sqlite']} · {named['platform']}\n"
        f"{report['seconds']} s, {report['worlds_per_second']} worlds/s · trace {report['trace']}",
        highlight=False,
        soft_wrap=True,
    )


def verdict(report: dict[str, Any]) -> str:
    """The answer to what was asked, in one line."""
    bad, worlds = len(report["violations"]), f"{report['worlds']:,} worlds"
    if bad:
        return f"FAILED: a promise was broken in {bad:,} of {worlds}; each can be replayed:"
    return f"PASSED: every promise held in all {worlds}"


def _replay(kinds: list[str], seed: int, as_json: bool) -> int:
    bad = False
    for kind in kinds:
        report = run_world(kind, seed, keep=True)
        bad = bad or bool(report.violations)
        if as_json:
            shown = {
                "kind": kind,
                "seed": seed,
                "versions": versions(),
                "trace": report.trace,
                "virtual_s": report.virtual_s,
                "violations": [str(violation) for violation in report.violations],
                "lines": report.lines,
            }
            sys.stdout.buffer.write(orjson.dumps(shown) + b"\n")
            continue
        verdict = f"{len(report.violations)} violations" if report.violations else "no violation"
        sys.stdout.write("\n".join([f"== {kind} {seed}", *report.lines, f"== {verdict} · trace {report.trace}\n"]))
    return 1 if bad else 0


def _zoo(as_json: bool) -> int:
    """Hunt every mutant."""
    console = Console(stderr=True)
    rows: list[dict[str, Any]] = []
    with console.status("…") as status:
        for mutant in mutants.zoo():
            status.update(mutant.name)
            kill = mutants.hunt(mutant)
            where = {"kind": kill.kind, "seed": kill.seed, "rule": kill.violation.rule} if kill else None
            rows.append({"mutant": mutant.name, "found": where})
    survivors = [row["mutant"] for row in rows if row["found"] is None]
    if as_json:
        sys.stdout.buffer.write(orjson.dumps({"versions": versions(), "mutants": rows, "survivors": survivors}) + b"\n")
        return 1 if survivors else 0
    table = Table("mutant", "noticed in", "seed", "by the rule", box=None)
    for row in rows:
        found: dict[str, Any] = row["found"] or {"kind": "[red]survived[/]", "seed": "", "rule": ""}
        table.add_row(row["mutant"], found["kind"], str(found["seed"]), found["rule"])
    Console().print(table)
    return 1 if survivors else 0
