"""`oraculo migrate`: the schema of the store, brought up to date, or only looked at."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from oraculo import redaction
from oraculo.adapters.stores.numbered import SchemaState
from oraculo.bootstrap.adapters import store_of
from oraculo.cli.exits import Exit
from oraculo.cli.output import AsJson, emit, say
from oraculo.cli.texts import t
from oraculo.settings.settings import load


def migrate(
    check: Annotated[bool, typer.Option("--check", help=t("o.check-schema"))] = False, json: AsJson = False
) -> None:
    url = load().store
    before, after = asyncio.run(_migrate(url, check=check))
    applied = [number for number in before.pending if number <= after.current]
    shown = redaction.urls(url)
    if json:
        emit(
            {
                "store": shown,
                "schema": after.current,
                "needed": after.newest,
                "applied": applied,
                "pending": list(after.pending),
                "up_to_date": after.up_to_date,
            }
        )
    elif not after.up_to_date:
        say(t("schema-behind", store=shown, schema=after.current, needed=after.newest))
    else:
        say(t("schema-migrated" if applied else "schema-current", store=shown, schema=after.current))
    if not after.up_to_date:
        raise typer.Exit(Exit.FAILED)


async def _migrate(url: str, *, check: bool) -> tuple[SchemaState, SchemaState]:
    """The state of the schema before and after. A SQLite database on which an engine runs is not changed; in PostgreSQL
    row-level security is switched on, where processes of an older version kept it off."""
    store = store_of(url, exclusive=True)
    before = await store.schema()
    if check or (before.up_to_date and store.sharing is None):
        return before, before
    async with store:
        return before, await store.schema()
