"""`oraculo audit`: the chain of records that follows from the journal, compared with what MongoDB has of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from oraculo import settings
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, err, note, say
from oraculo.cli.texts import t
from oraculo.errors import UnknownIdError

if TYPE_CHECKING:
    from rich.progress import Progress

    from oraculo.adapters.sinks.mongo.reader import ChainReader
    from oraculo.ports.store import Recorded, Store
    from oraculo.settings import Settings
    from oraculo.wire.audit import Problem

AT_ONCE = 200  # orchestrations
MOST = 1000  # problems that are told; all are counted

Id = Annotated[str | None, typer.Argument(metavar="[ID]", help=t("o.audit-id"), show_default=False)]


@dataclass(slots=True)
class Verdict:
    """`pending` records are not written yet; `archived` ones are of orchestrations that the journal has forgotten."""

    orchestrations: int = 0
    records: int = 0
    pending: int = 0
    archived: int = 0
    wrong: int = 0
    problems: list[Problem] = field(default_factory=list)
    head: str = ""  # of the one that was named

    def document(self) -> dict[str, Any]:
        return {
            "ok": not self.wrong,
            "orchestrations": self.orchestrations,
            "records": self.records,
            "pending": self.pending,
            "archived": self.archived,
            "problems_total": self.wrong,
            "problems": [one.document() for one in self.problems],
            "head": self.head or None,
        }

    def add(self, found: Problem) -> None:
        self.wrong += 1
        if len(self.problems) < MOST:
            self.problems.append(found)


def verify(correlation_id: Id = None, json: AsJson = False) -> None:
    known = settings.load()
    with _progress() as progress:
        found = asyncio.run(examine(known, correlation_id, progress))
    if json:
        emit({"mongodb": bool(known.mongodb_uri), **found.document()})
    else:
        for one in found.problems:
            say(f"{one.kind:<8} {one.correlation_id or '?'} {one.run}:{one.seq}  {one.detail}", "red")
        _summary(found, bool(known.mongodb_uri))
    if found.wrong:
        raise typer.Exit(Exit.FAILED)


def _summary(found: Verdict, compared: bool) -> None:
    text = t("audit-broken", count=found.wrong) if found.wrong else t("audit-whole")
    say(text, "red" if found.wrong else "green")
    note(t("audit-counts", orchestrations=found.orchestrations, records=found.records))
    if not compared:
        note(t("audit-alone"))
    if found.pending:
        note(t("audit-pending", count=found.pending))
    if found.archived:
        note(t("audit-archived", count=found.archived))
    if found.head:
        note(t("audit-head", hash=found.head))


def export(
    correlation_id: Id = None,
    to: Annotated[Path | None, typer.Option(help=t("o.audit-to"), show_default=False)] = None,
    json: AsJson = False,
) -> None:
    """The chain as JSON lines, from the journal."""
    known = settings.load()
    try:
        with _progress() as progress, nullcontext(None) if to is None else open(to, "wb") as file:
            count = asyncio.run(_export(known, correlation_id, file, progress))
    except OSError as error:
        if to is None:
            raise
        raise CommandError(f"{to}: {error.strerror or error}", Exit.USAGE) from None
    if to is not None:
        if json:
            emit({"records": count, "to": str(to)})
        else:
            note(t("audit-exported", count=count, to=to))


async def _export(known: Settings, correlation_id: str | None, file: IO[bytes] | None, progress: Progress) -> int:
    from oraculo.cli.journal import opened
    from oraculo.wire import audit, strict_json

    count = 0
    async with opened(known.store) as store:
        task = progress.add_task("", total=await _total(store, correlation_id))
        async for steps in _journal(store, correlation_id):
            for record in audit.chain(steps):
                count += 1
                if file is None:
                    emit(record)
                else:
                    file.write(strict_json.dumps(record) + b"\n")
            progress.advance(task)
    return count


# -- verify ------------------------------------------------------------------------------------------------------------


async def examine(known: Settings, correlation_id: str | None, progress: Progress) -> Verdict:
    from oraculo.cli.journal import opened

    found = Verdict()
    async with opened(known.store) as store, _reader(known) as reader:
        read = await _read_so_far(store) if reader is not None else 0
        task = progress.add_task("", total=await _total(store, correlation_id))
        seen: set[int] = set()
        some: list[list[Recorded]] = []
        async for steps in _journal(store, correlation_id):
            seen.add(steps[0].run)
            some.append(steps)
            if len(some) == AT_ONCE:
                await _compare(some, read, reader, found)
                progress.advance(task, len(some))
                some = []
        await _compare(some, read, reader, found)
        if correlation_id is None:
            found.head = ""
            if reader is not None:
                await _forgotten(reader, seen, found)
    return found


async def _compare(chains: Sequence[list[Recorded]], read: int, reader: ChainReader | None, found: Verdict) -> None:
    """The chains of these orchestrations as the journal gives them, and as MongoDB has them."""
    from oraculo.wire import audit

    kept = {} if reader is None or not chains else await reader.of([steps[0].run for steps in chains])
    for steps in chains:
        found.orchestrations += 1
        gap = _gap(steps)
        if gap is not None:
            found.add(gap)
        expected = list(audit.chain(steps))
        found.records += len(expected)
        found.head = expected[-1]["hash"]
        if reader is None:
            continue
        there = kept.get(steps[0].run, [])
        written = {record["_id"] for record in there}
        due = []
        for step, record in zip(steps, expected, strict=True):
            if step.position <= read or record["_id"] in written:
                due.append(record)
            else:
                found.pending += 1
        for problem in audit.differences(due, there):
            found.add(problem)


def _gap(steps: Sequence[Recorded]) -> Problem | None:
    """Events are numbered without gaps; a journal where that is not so was changed."""
    from oraculo.wire.audit import Problem

    due, name = 1, getattr(steps[0].events[0], "correlation_id", "")
    for step in steps:
        if step.first != due:
            return Problem("missing", step.run, due, name, f"the journal goes on with event {step.first}")
        due += len(step.events)
    return None


async def _forgotten(reader: ChainReader, seen: set[int], found: Verdict) -> None:
    """What MongoDB has of orchestrations that the journal does not have (any more): whole by itself?"""
    from oraculo.wire import audit

    async for run, records in reader.chains():
        if run not in seen:
            found.archived += len(records)
            for problem in audit.broken_links(records):
                found.add(problem)


async def _read_so_far(store: Store) -> int:
    from oraculo.adapters.sinks.mongo.audit import NAME

    return (await store.cursors()).get(NAME, 0)


@asynccontextmanager
async def _reader(known: Settings) -> AsyncIterator[ChainReader | None]:
    if not known.mongodb_uri:
        yield None
        return
    from oraculo.parts import audit_writer

    writer = audit_writer(known)
    from oraculo.adapters.sinks.mongo.reader import ChainReader

    reader = ChainReader(writer)
    try:
        await reader.count()  # says at once when it cannot be reached
        yield reader
    finally:
        await reader.close()


# -- the journal -------------------------------------------------------------------------------------------------------


async def _journal(store: Store, correlation_id: str | None) -> AsyncIterator[list[Recorded]]:
    """All steps of one orchestration after the other, newest first; or of the one that is named."""
    from oraculo.ports.store import Query

    if correlation_id is not None:
        run = (await store.locate([correlation_id])).get(correlation_id)
        if run is None:
            raise UnknownIdError("orchestration", correlation_id)
        yield (await store.load([run]))[run]
        return
    before: int | None = None
    while page := await store.find(Query(before_run=before, limit=AT_ONCE)):
        loaded = await store.load([one.run for one in page])
        for one in page:
            if one.run in loaded:  # else it was forgotten a moment ago
                yield loaded[one.run]
        before = page[-1].run


async def _total(store: Store, correlation_id: str | None) -> int:
    return 1 if correlation_id is not None else sum((await store.count_by_status()).values())


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err(), transient=True, disable=not err().is_terminal)
