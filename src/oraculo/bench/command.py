"""The command: runs workloads, shows progress, prints a table or JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from oraculo import logs
from oraculo.bench import workloads
from oraculo.errors import MissingExtraError


class Workload(StrEnum):
    W1 = "W1"
    W2 = "W2"
    SEQ = "SEQ"
    WIDTH = "WIDTH"
    AGE = "AGE"
    INFLIGHT = "INFLIGHT"
    ALL = "all"


SIZES = {"W1": 5000, "W2": 10_000, "SEQ": 100, "WIDTH": 10_000, "AGE": 100_000, "INFLIGHT": 10_000}
USUAL = ("W1", "W2", "SEQ")


def command(
    workload: Annotated[Workload, typer.Option(help="Which workload; all: W1, W2 and SEQ.")] = Workload.ALL,
    n: Annotated[int | None, typer.Option("-n", help="How many orchestrations, or how wide.", min=1)] = None,
    http: Annotated[bool, typer.Option("--http", help="Submit over HTTP to a server in another process.")] = False,
    loop: Annotated[str, typer.Option(help="uvloop, asyncio, or auto: uvloop when it is installed.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per workload on standard output.")] = False,
) -> None:
    """Measure this machine: durable (synchronous=FULL), in one process, with the in-process broker.

    Example: oraculo bench --workload W1 -n 10000 --json
    """
    logs.configure("WARNING", "text")
    console = Console(stderr=True)
    chosen = USUAL if workload is Workload.ALL else (workload.value,)
    figures = []
    with console.status("…") as status:
        for name in chosen:
            run = _workload(name, http)
            found = _runner(loop)(run(n or SIZES[name], lambda text: status.update(text)))
            figures.append(found)
            if as_json:
                sys.stdout.write(json.dumps(found) + "\n")
                sys.stdout.flush()
    if not as_json:
        Console().print(_table(figures))


def _workload(name: str, http: bool) -> Any:
    found = getattr(import_module("oraculo.bench.over_http") if http else workloads, name.lower(), None)
    if found is None:
        raise typer.BadParameter(f"{name} has no form over HTTP; W1 and SEQ have")
    return found


def _runner(loop: str) -> Any:
    if loop != "asyncio":
        try:
            return import_module("uvloop").run
        except ImportError:
            if loop == "uvloop":
                raise MissingExtraError("--loop uvloop", "fast") from None
    return asyncio.run


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table("workload", "figures")
    for found in figures:
        name = found.pop("workload")
        table.add_row(name, ", ".join(f"{key} {value}" for key, value in found.items()))
    return table
