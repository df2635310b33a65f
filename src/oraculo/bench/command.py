"""The command: runs workloads, shows progress, prints a table or JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oraculo import logs
from oraculo.adapters.brokers.registry import plugin_of, scheme_of
from oraculo.bench import profiles
from oraculo.bench.place import MEMORY, Place
from oraculo.errors import MissingExtraError
from oraculo.settings.settings import load

if TYPE_CHECKING:
    from rich.table import Table

    from oraculo.bench.workloads import Progress


class Workload(StrEnum):
    W1 = "W1"
    W2 = "W2"
    SEQ = "SEQ"
    WIDTH = "WIDTH"
    MAP = "MAP"
    CHAIN = "CHAIN"
    FIBO = "FIBO"
    AGE = "AGE"
    INFLIGHT = "INFLIGHT"
    LOAD = "LOAD"
    RATES = "RATES"
    STEPS = "STEPS"
    COST = "COST"
    ALL = "all"


SIZES = {
    "W1": 5000,
    "W2": 10_000,
    "SEQ": 100,
    "WIDTH": 10_000,
    "MAP": 50_000,
    "CHAIN": 1000,
    "FIBO": 400,
    "AGE": 100_000,
    "INFLIGHT": 10_000,
    "LOAD": 5000,
    "RATES": 5000,
    "STEPS": 100,
    "COST": 5000,
}
MODULES = {"CHAIN": "chains", "FIBO": "chains", "RATES": "offered", "STEPS": "offered", "COST": "cost"}
DEFAULT_WORKLOADS = ("W1", "W2", "SEQ", "LOAD")
ANYWHERE = (*DEFAULT_WORKLOADS, "FIBO", "RATES", "COST")  # on any broker


def command(
    workload: Annotated[Workload, typer.Option(help="Which workload; all: W1, W2, SEQ and LOAD.")] = Workload.ALL,
    n: Annotated[int | None, typer.Option("-n", help="How many orchestrations, or how wide.", min=1)] = None,
    broker: Annotated[
        list[str] | None,
        typer.Option(help="URL of a broker that nobody else uses; repeatable.", metavar="URL", show_default=MEMORY),
    ] = None,
    worker_processes: Annotated[int, typer.Option(help="Workers, when the broker is a server.", min=1, max=64)] = 1,
    store: Annotated[
        str, typer.Option(help="URL of an empty PostgreSQL database.", metavar="URL", show_default="a SQLite file")
    ] = "",
    engine: Annotated[str, typer.Option(help="local, temporal, or celery with two Celery processes.")] = "local",
    temporal: Annotated[
        str, typer.Option(help="Where Temporal is, for the engine temporal.", metavar="HOST:PORT", show_default=False)
    ] = "",
    tokens: Annotated[str, typer.Option(help="As ORACULO_RESULT_TOKENS: off, accept or require.")] = "off",
    http: Annotated[bool, typer.Option("--http", help="Submit over HTTP to a server in another process.")] = False,
    profile: Annotated[
        Path | None, typer.Option(help="Write profiles into this folder and show the top functions.", metavar="FOLDER")
    ] = None,
    loop: Annotated[str, typer.Option(help="uvloop, asyncio, or auto: uvloop when it is installed.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per workload on standard output.")] = False,
) -> None:
    """Measure this machine, durably (synchronous=FULL): with the in-process broker and workers, or on a server's broker
    with workers in processes of their own.

    Example: oraculo bench --workload W1 -n 10000 --broker redis://127.0.0.1:6379/9 --json
    """
    logs.configure("WARNING", "text")
    chosen = DEFAULT_WORKLOADS if workload is Workload.ALL else (workload.value,)
    asked = [Place(url, worker_processes, profile, store, engine, temporal, tokens) for url in broker or [MEMORY]]
    places = [_checked(place, http, chosen) for place in asked]
    figures = []
    with _progress() as tell:
        for place in places:
            for name in chosen:
                run = _workload(name, http)
                found = _runner(loop)(run(n or SIZES[name], tell, place))
                figures.append(found)
                if as_json:
                    sys.stdout.write(json.dumps({**found, "versions": _versions(place.broker)}) + "\n")
                    sys.stdout.flush()
                if profile is not None:
                    profiles.show(profile, sys.stderr)
    if not as_json:
        from rich.console import Console

        Console().print(_table(figures))


@contextmanager
def _progress() -> Iterator[Progress]:
    """Tell on a terminal what is being measured. Elsewhere nothing is told, and nothing is loaded for it."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("…") as status:
        yield lambda text: status.update(text)


def _checked(place: Place, http: bool, chosen: tuple[str, ...]) -> Place:
    load(place.environment("."), None)
    if not place.embedded and not set(chosen) <= set(ANYWHERE):
        raise typer.BadParameter(f"{chosen[0]} runs with {MEMORY} only; {', '.join(ANYWHERE)} run on any broker")
    if http and place.engine != "local":
        raise typer.BadParameter("--http measures the engine local only")
    if place.profile is not None:
        if http:
            raise typer.BadParameter("--profile shows this process, and with --http the orchestrator is in another")
        place.profile.mkdir(parents=True, exist_ok=True)
    return place


def _workload(name: str, http: bool) -> Any:
    local = MODULES.get(name, "workloads")
    found = getattr(import_module(f"oraculo.bench.{'over_http' if http else local}"), name.lower(), None)
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


def _versions(broker: str) -> dict[str, str]:
    found = {}
    for package in ("oraculo", "uvloop", plugin_of(scheme_of(broker)).client or None):
        if package is not None:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                continue
    return found


def _table(figures: list[dict[str, Any]]) -> Table:
    """A row for each figure, a column for each run: workloads measure different things, and a terminal is narrow."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for found in figures:
        table.add_column(f"{found['workload']}", justify="right")
    rows = dict.fromkeys(key for found in figures for key in found if key != "workload")
    for key in rows:
        table.add_row(key.replace("_", " "), *(_figure(found.get(key)) for found in figures))
    return table


def _figure(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
