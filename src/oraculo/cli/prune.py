"""`oraculo prune`: forget what ended long ago, a little at a time, so that a running server is never held up."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Annotated

import typer

from oraculo import settings
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Yes, emit, err, say
from oraculo.cli.texts import t

CHUNK = 500


def prune(
    older_than: Annotated[str, typer.Option(help=t("o.older"), metavar="AGE")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    before = inputs.ago(older_than)
    url = settings.load().store
    if url.startswith("sqlite:"):
        from oraculo.cli.journal import existing

        existing(url)
    if not yes:
        if not sys.stdin.isatty():
            raise CommandError(t("need-yes"), Exit.USAGE)
        typer.confirm(
            t("confirm-prune", before=before.isoformat(" ", "seconds"), store=settings.redact(url)),
            abort=True,
            err=True,
        )
    count = asyncio.run(_prune(url, before))
    if json:
        emit({"removed": count, "before": before})
    else:
        say(t("pruned", count=count))


async def _prune(url: str, before: datetime) -> int:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from oraculo.cli.journal import opened

    total = 0
    columns = (SpinnerColumn(), TextColumn("{task.completed}"), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as progress:
        task = progress.add_task("", total=None)
        async with opened(url) as store:
            while True:
                removed = await store.prune(before, CHUNK)
                total += removed
                progress.update(task, completed=total)
                if removed < CHUNK:
                    return total
                await asyncio.sleep(0.01)  # let the server write in between
