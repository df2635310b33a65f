"""`oraculo migrate-store`: copy a store into an empty one while no process uses either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oraculo import redaction
from oraculo.adapters.brokers.registry import scheme_of
from oraculo.adapters.stores import moving
from oraculo.bootstrap.adapters import sqlite_path, store_of
from oraculo.cli.journal import existing
from oraculo.cli.output import AsJson, emit, err, say
from oraculo.cli.texts import t
from oraculo.errors import StoreError
from oraculo.settings import readers as settings_readers

if TYPE_CHECKING:
    from oraculo.adapters.stores.moving import Row, Side


def migrate_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help=t("o.from"))],
    target: Annotated[str, typer.Argument(metavar="TO", help=t("o.to-store"))],
    json: AsJson = False,
) -> None:
    for name, url in (("FROM", source), ("TO", target)):
        settings_readers.store_url(name, url)
    with closing(_side(source, target=False)) as giver, closing(_side(target, target=True)) as taker:
        moving.refuse_unless_empty(taker)
        counts = _copy(giver, taker)
    if json:
        emit({"from": redaction.urls(source), "to": redaction.urls(target), "tables": counts})
    else:
        say(t("migrated", count=counts["runs"], steps=counts["journal"], store=redaction.urls(target)))


def _side(url: str, *, target: bool) -> Side:
    from oraculo.adapters.stores.moving import PostgresSide, SqliteSide

    if scheme_of(url) != "sqlite":
        store_of(url)  # says which extra is missing
        return PostgresSide(url, target=target)
    return SqliteSide(sqlite_path(url) if target else existing(url), target=target)


def _copy(giver: Side, taker: Side) -> dict[str, int]:
    from oraculo.adapters.stores.moving import COPY_CHUNK_ROWS, SEQUENCES, TABLES

    counts = {table: giver.count(table) for table in TABLES}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as progress:
        task = progress.add_task("", total=sum(counts.values()))
        for table in TABLES:
            progress.update(task, description=table)
            for rows in _chunks(giver.rows(table), COPY_CHUNK_ROWS):
                taker.put(table, rows)
                progress.advance(task, len(rows))
            if table in SEQUENCES:
                taker.set_last_number(table, giver.last_number(table))
    for table, count in counts.items():
        if taker.count(table) != count:
            raise StoreError(f"{taker.count(table)} of {count} rows of {table} arrived: nothing was kept")
    taker.finish()
    return counts


def _chunks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, size)):
        yield chunk
