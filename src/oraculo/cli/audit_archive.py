"""`oraculo audit archive`: whether files that retention has written are whole, without any store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, note, say
from oraculo.cli.texts import t
from oraculo.wire import audit

PROBLEMS_SHOWN = 20


def archive(
    path: Annotated[Path, typer.Argument(help=t("o.archive-path"), show_default=False)], json: AsJson = False
) -> None:
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    if not files or not all(one.is_file() for one in files):
        raise CommandError(t("archive.none", path=path), Exit.NOT_FOUND)
    records, runs, problems = 0, 0, []
    for file in files:
        chains, bad = _chains(file)
        problems += bad
        runs += len(chains)
        for run, chain in chains.items():
            records += len(chain)
            found = audit.broken_links([chain[seq] for seq in sorted(chain)])
            problems += [{"file": str(file), "run": run, "kind": one.kind, "detail": one.detail} for one in found]
    if json:
        emit({"files": len(files), "orchestrations": runs, "records": records, "problems": problems[:PROBLEMS_SHOWN]})
    else:
        for one in problems[:PROBLEMS_SHOWN]:
            say(f"{one['kind']:<10} {one['file']} {one['run']}  {one['detail']}", "red")
        say(t("audit-broken", count=len(problems)) if problems else t("archive.whole"), "red" if problems else "green")
        note(t("archive.counts", files=len(files), runs=runs, records=records))
    if problems:
        raise typer.Exit(Exit.FAILED)


def _chains(file: Path) -> tuple[dict[int, dict[int, dict[str, Any]]], list[dict[str, Any]]]:
    """run → number of its first event → record; and lines that cannot be read, or stand twice with other bytes."""
    chains: dict[int, dict[int, dict[str, Any]]] = {}
    problems: list[dict[str, Any]] = []
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = orjson.loads(line)
                known = chains.setdefault(record["run"], {}).setdefault(record["seq"], record)
            except (orjson.JSONDecodeError, KeyError, TypeError):
                problems.append({"file": str(file), "run": None, "kind": "unreadable", "detail": f"line {number}"})
                continue
            if known != record:
                detail = f"line {number} says something else about {record['seq']}"
                problems.append({"file": str(file), "run": record["run"], "kind": "altered", "detail": detail})
    return chains, problems
