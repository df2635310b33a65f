"""`oraculo retention`: what the rules of ORACULO_RETENTION forget, and forgetting it now. Works on the store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import typer

from oraculo import logs, redaction
from oraculo.adapters.clock import MonotonicClock
from oraculo.bootstrap.adapters import retention_of
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import opened
from oraculo.cli.output import AsJson, Yes, emit, note, say, table
from oraculo.cli.texts import t
from oraculo.runtime.retention import DueRuns, RetentionRounds
from oraculo.settings import settings

T = TypeVar("T")
DryRun = Annotated[bool, typer.Option("--dry-run", help=t("o.retention-dry"))]


def status(json: AsJson = False) -> None:
    chosen = settings.load()
    if not chosen.retention.rules:
        if json:
            emit({"regras": "", "arquivo": None, "vencidas": []})
        else:
            say(t("retention-off"))
        return
    _show(asyncio.run(_with_rounds(lambda rounds: rounds.due())), json)


def run(dry_run: DryRun = False, yes: Yes = False, json: AsJson = False) -> None:
    chosen = settings.load()
    if not chosen.retention.rules:
        raise CommandError(t("retention-off"), Exit.USAGE)
    if dry_run:
        _show(asyncio.run(_with_rounds(lambda rounds: rounds.due())), json)
        return
    if not yes:
        if not sys.stdin.isatty():
            raise CommandError(t("need-yes"), Exit.USAGE)
        where = redaction.urls(chosen.store)
        typer.confirm(t("confirm-retention", rules=chosen.retention.rules, store=where), abort=True, err=True)
    count = asyncio.run(_with_rounds(lambda rounds: rounds.round()))
    if json:
        emit({"esquecidas": count})
    else:
        say(t("pruned", count=count))


async def _with_rounds(work: Callable[[RetentionRounds], Awaitable[T]]) -> T:
    logs.leave_to_program()  # standard output is for the answer
    chosen = settings.load()
    async with opened(chosen.store) as store:
        rounds = retention_of(chosen, store, MonotonicClock())
        assert rounds is not None, "there are rules"
        return await work(rounds)


def _show(due: list[DueRuns], json: bool) -> None:
    chosen = settings.load().retention
    if json:
        found = [
            {"tenant": one.tenant, "tipo": one.tipo, "idade_s": one.age.total_seconds(), "quantas": one.count}
            for one in due
        ]
        emit({"regras": chosen.rules, "arquivo": chosen.archive or None, "vencidas": found})
        return
    note(t("retention-rules", rules=chosen.rules, archive=chosen.archive or "–"))
    rows = ((one.tenant, one.tipo or "", _days(one.age), one.count) for one in due)
    table(("tenant", "tipo", "idade", "quantas"), rows, "none.due")


def _days(age: timedelta) -> str:
    return f"{age / timedelta(days=1):g} d"
