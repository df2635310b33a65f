"""`oraculo prune`: forget what ended long ago, a little at a time, so that a running server is never held up."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from oraculo import redaction
from oraculo.bootstrap.adapters import unused_projections
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import existing, opened, projection_types
from oraculo.cli.output import AsJson, Yes, emit, err, note, say
from oraculo.cli.texts import t
from oraculo.ports.system_events import SystemEvent
from oraculo.runtime.project import unread
from oraculo.runtime.retention import PRUNED, PRUNED_BEFORE
from oraculo.settings import settings

RUNS_PER_TRANSACTION = 500


def prune(
    older_than: Annotated[str, typer.Option(help=t("o.older"), metavar="AGE")],
    unread: Annotated[bool, typer.Option("--unread", help=t("o.unread"))] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    before = inputs.ago(older_than)
    chosen = settings.load()
    url = chosen.store
    if url.startswith("sqlite:"):
        existing(url)
    if not yes:
        if not sys.stdin.isatty():
            raise CommandError(t("need-yes"), Exit.USAGE)
        typer.confirm(
            t("confirm-prune", before=before.isoformat(" ", "seconds"), store=redaction.urls(url)),
            abort=True,
            err=True,
        )
    count, waiting = asyncio.run(_prune(url, before, unread, unused_projections(chosen)))
    if json:
        emit({"removed": count, "before": before, "unread": waiting})
        return
    say(t("pruned", count=count))
    for name, steps in waiting.items():
        note(t("unread", name=name, steps=steps))


async def _prune(url: str, before: datetime, all: bool, unused: list[str]) -> tuple[int, dict[str, int]]:
    """How many were forgotten; and the projection that has read least, with what it has not read."""
    total = 0
    columns = (SpinnerColumn(), TextColumn("{task.completed}"), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as progress:
        task = progress.add_task("", total=None)
        async with opened(url) as store:
            types = projection_types()
            least = None if all else await unread(store, types, ignored=unused)
            name, lag = least or ("", None)
            body = {PRUNED_BEFORE: before.isoformat(), "tudo": all}
            await store.record_system_event(SystemEvent(PRUNED, inputs.now(), body))
            while True:
                removed = await store.prune(before, RUNS_PER_TRANSACTION, None if lag is None else lag.read)
                total += removed
                progress.update(task, completed=total)
                if removed < RUNS_PER_TRANSACTION:
                    return total, {name: lag.steps} if lag is not None and lag.steps else {}
                await asyncio.sleep(0.01)  # let the server write in between
