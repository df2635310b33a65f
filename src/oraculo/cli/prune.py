"""`oraculo prune`: forget what ended long ago, a little at a time, so that a running server is never held up."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from oraculo import redaction, settings
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, Yes, emit, err, note, say
from oraculo.cli.texts import t

CHUNK = 500
TOPICS = "fluxo_c_topics"


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
        from oraculo.cli.journal import existing

        existing(url)
    if not yes:
        if not sys.stdin.isatty():
            raise CommandError(t("need-yes"), Exit.USAGE)
        typer.confirm(
            t("confirm-prune", before=before.isoformat(" ", "seconds"), store=redaction.urls(url)),
            abort=True,
            err=True,
        )
    nobody = () if chosen.takes_plans else (TOPICS,)  # without Fluxo C nobody reads on for its topics
    count, waiting = asyncio.run(_prune(url, before, unread, nobody))
    if json:
        emit({"removed": count, "before": before, "unread": waiting})
        return
    say(t("pruned", count=count))
    for name, steps in waiting.items():
        note(t("unread", name=name, steps=steps))


async def _prune(url: str, before: datetime, unread: bool, nobody: Sequence[str] = ()) -> tuple[int, dict[str, int]]:
    """How many were forgotten; and the projection that has read least, with what it has not read."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from oraculo.cli.journal import opened
    from oraculo.runtime.project import least_read

    total = 0
    columns = (SpinnerColumn(), TextColumn("{task.completed}"), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as progress:
        task = progress.add_task("", total=None)
        async with opened(url) as store:
            cursors = {name: position for name, position in (await store.cursors()).items() if name not in nobody}
            least = None if unread else least_read(cursors)
            while True:
                removed = await store.prune(before, CHUNK, None if least is None else least[1])
                total += removed
                progress.update(task, completed=total)
                if removed < CHUNK:
                    steps = 0 if least is None else (await store.lag(least[1])).steps
                    return total, {least[0]: steps} if least is not None and steps else {}
                await asyncio.sleep(0.01)  # let the server write in between
