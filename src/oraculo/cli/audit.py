"""`oraculo audit`: the chain of records that follows from the journal, compared with what MongoDB has of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from oraculo.bootstrap.adapters import audit_writer
from oraculo.cli import audit_documents, inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import opened
from oraculo.cli.output import AsJson, emit, err, note, say
from oraculo.cli.prune import PRUNED, PRUNED_BEFORE
from oraculo.cli.texts import t
from oraculo.core.events import OrchestrationClosed
from oraculo.core.replay import rebuild
from oraculo.errors import UnknownIdError
from oraculo.ports.catalogue import Query
from oraculo.ports.cursors import Cursors
from oraculo.ports.journal import Recorded
from oraculo.ports.statistics import Statistics
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEventLog
from oraculo.settings import settings
from oraculo.settings.settings import Settings
from oraculo.wire import audit, strict_json, views
from oraculo.wire.audit import Problem

if TYPE_CHECKING:
    from oraculo.adapters.sinks.mongo.reader import ChainReader

RUNS_PER_PAGE = 200  # orchestrations
PROBLEMS_SHOWN = 1000  # problems that are told; all are counted
PRUNINGS_READ = 1000  # the latest ones
ENDED = views.event_name(OrchestrationClosed)

Id = Annotated[str | None, typer.Argument(metavar="[ID]", help=t("o.audit-id"), show_default=False)]


@dataclass(slots=True)
class Verdict:
    """`pending` records are not written yet; `archived` ones are of orchestrations that were pruned, `deleted` ones of
    orchestrations that the journal has lost in another way. `documents` (results, tickets) were compared, too."""

    orchestrations: int = 0
    records: int = 0
    documents: int = 0
    pending: int = 0
    archived: int = 0
    deleted: int = 0
    wrong: int = 0
    problems: list[Problem] = field(default_factory=list)
    head: str = ""  # of the one that was named

    def document(self) -> dict[str, Any]:
        return {
            "ok": not self.wrong,
            "orchestrations": self.orchestrations,
            "records": self.records,
            "documents": self.documents,
            "pending": self.pending,
            "archived": self.archived,
            "deleted": self.deleted,
            "problems_total": self.wrong,
            "problems": [one.document() for one in self.problems],
            "head": self.head or None,
        }

    def add(self, found: Problem) -> None:
        self.wrong += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(found)


def verify(
    correlation_id: Id = None,
    pruned: Annotated[
        str | None, typer.Option("--pruned", help=t("o.audit-pruned"), metavar="AGE", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    known = settings.load()
    before = None if pruned is None else inputs.ago(pruned)
    with _progress() as progress:
        found = asyncio.run(examine(known, correlation_id, progress, before))
    if json:
        emit({"mongodb": bool(known.mongodb.uri), **found.document()})
    else:
        for one in found.problems:
            say(f"{one.kind:<10} {one.correlation_id or '?'} {one.run}:{one.seq}  {one.detail}", "red")
        _summary(found, bool(known.mongodb.uri))
    if found.wrong:
        raise typer.Exit(Exit.FAILED)


def _summary(found: Verdict, compared: bool) -> None:
    text = t("audit-broken", count=found.wrong) if found.wrong else t("audit-whole" if compared else "audit-gapless")
    say(text, "red" if found.wrong else "green")
    note(t("audit-counts", orchestrations=found.orchestrations, records=found.records, documents=found.documents))
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
    count = 0
    async with opened(known.store) as store:
        task = progress.add_task("", total=await _total(store, correlation_id))
        async for steps in _journal(store, correlation_id):
            if isinstance(steps, Problem):
                raise CommandError(f"{steps.correlation_id} {steps.run}:{steps.seq}: {steps.detail}", Exit.FAILED)
            for record in audit.chain(steps):
                count += 1
                if file is None:
                    emit(record, as_it_is=True)
                else:
                    file.write(strict_json.dumps(record) + b"\n")
            progress.advance(task)
    return count


# -- verify ------------------------------------------------------------------------------------------------------------


async def examine(
    known: Settings, correlation_id: str | None, progress: Progress, pruned: datetime | None = None
) -> Verdict:
    """Look at one orchestration, or at all. `pruned`: what ended before was pruned, whether or not that was noted."""
    found = Verdict()
    async with opened(known.store) as store, _reader(known) as reader:
        read = await _read_so_far(store) if reader is not None else 0
        task = progress.add_task("", total=await _total(store, correlation_id))
        seen: set[int] = set()
        some: list[list[Recorded]] = []
        async for steps in _journal(store, correlation_id):
            progress.advance(task)
            if isinstance(steps, Problem):
                seen.add(steps.run)
                found.orchestrations += 1
                found.add(steps)
                continue
            seen.add(steps[0].run)
            some.append(steps)
            if len(some) == RUNS_PER_PAGE:
                await _compare(store, some, read, reader, found)
                some = []
        await _compare(store, some, read, reader, found)
        if correlation_id is None:
            found.head = ""
            if reader is not None:
                await _forgotten(
                    store, reader, seen, max(filter(None, (pruned, await pruned_before(store))), default=None), found
                )
    return found


async def _compare(
    store: Store, chains: Sequence[list[Recorded]], read: int, reader: ChainReader | None, found: Verdict
) -> None:
    """The chains of these orchestrations as the journal gives them, and as MongoDB has them; and what was made from
    the journal once: results, tickets."""
    kept = {} if reader is None or not chains else await reader.of([steps[0].run for steps in chains])
    for steps in chains:
        found.orchestrations += 1
        gap = _gap(steps)
        if gap is not None:
            found.add(gap)
        expected = list(audit.chain(steps))
        found.records += len(expected)
        found.head = expected[-1]["hash"]
        if reader is not None:
            _compare_chain(steps, expected, kept.get(steps[0].run, []), read, found)
        if gap is None:
            await _compare_documents(store, steps, reader if steps[-1].position <= read else None, found)


def _compare_chain(
    steps: Sequence[Recorded], expected: Sequence[audit.Record], there: list[audit.Record], read: int, found: Verdict
) -> None:
    written = {record["_id"] for record in there}
    due = []
    for step, record in zip(steps, expected, strict=True):
        if step.position <= read or record["_id"] in written:
            due.append(record)
        else:
            found.pending += 1
    for problem in audit.differences(due, there):
        found.add(problem)


async def _compare_documents(
    store: Store, steps: Sequence[Recorded], reader: ChainReader | None, found: Verdict
) -> None:
    try:
        state = rebuild(steps)
        expected = audit_documents.result_of(steps)
    except audit_documents.READ_ERRORS as error:
        found.add(audit_documents.unfit(steps, error))
        return
    if expected is not None:
        found.documents += 1
        for problem in audit_documents.result_problems(state, expected, await store.result(state.run)):
            found.add(problem)
    if reader is not None:
        async for count, problems in audit_documents.kept_problems(reader, state):
            found.documents += count
            for problem in problems:
                found.add(problem)


def _gap(steps: Sequence[Recorded]) -> Problem | None:
    """Events are numbered without gaps; a journal where that is not so was changed."""
    due, name = 1, getattr(steps[0].events[0], "correlation_id", "")
    for step in steps:
        if step.first != due:
            return Problem("missing", step.run, due, name, f"the journal goes on with event {step.first}")
        due += len(step.events)
    return None


async def _forgotten(
    store: Store, reader: ChainReader, seen: set[int], pruned: datetime | None, found: Verdict
) -> None:
    """What MongoDB has of orchestrations that the journal does not have (any more): was it pruned, and is it whole by
    itself?"""
    async for run, records in reader.chains():
        if run in seen or (isinstance(run, int) and await store.load([run])):  # it may have begun meanwhile
            continue
        ended = _ended(records)
        if pruned is not None and ended is not None and ended < pruned:
            found.archived += len(records)
        else:
            found.deleted += len(records)
            found.add(audit.lost(records[0]))
        for problem in audit.broken_links(records):
            found.add(problem)


def _ended(records: Sequence[audit.Record]) -> datetime | None:
    """When the orchestration of these records ended, if they say so."""
    for record in reversed(records):
        if ENDED in (record.get("events") or ()):
            try:
                return datetime.fromisoformat(str(record.get("at")))
            except ValueError:
                return None
    return None


async def pruned_before(store: SystemEventLog) -> datetime | None:
    """The latest instant up to which `oraculo prune` was asked to forget."""
    noted = [event.body.get(PRUNED_BEFORE) for event in await store.system_events(PRUNINGS_READ, PRUNED)]
    return max((datetime.fromisoformat(str(one)) for one in noted if one), default=None)


async def _read_so_far(store: Cursors) -> int:
    from oraculo.adapters.sinks.mongo.audit import NAME

    return (await store.cursors()).get(NAME, 0)


@asynccontextmanager
async def _reader(known: Settings) -> AsyncIterator[ChainReader | None]:
    if not known.mongodb.uri:
        yield None
        return

    writer = audit_writer(known)
    from oraculo.adapters.sinks.mongo.reader import ChainReader

    reader = ChainReader(writer)
    try:
        await reader.count()  # says at once when it cannot be reached
        yield reader
    finally:
        await reader.close()


# -- the journal -------------------------------------------------------------------------------------------------------


async def _journal(store: Store, correlation_id: str | None) -> AsyncIterator[list[Recorded] | Problem]:
    """All steps of one orchestration after the other, newest first; or of the one that is named. One whose journal
    cannot be read is a problem."""
    if correlation_id is not None:
        run = (await store.locate([correlation_id])).get(correlation_id)
        if run is None:
            raise UnknownIdError("orchestration", correlation_id)
        yield await audit_documents.readable(store, run, correlation_id) or (await store.load([run]))[run]
        return
    before: int | None = None
    while page := await store.find(Query(before_run=before, limit=RUNS_PER_PAGE, tenant=None)):
        try:
            loaded = await store.load([one.run for one in page])
        except audit_documents.READ_ERRORS:
            loaded = {}
            for one in page:
                problem = await audit_documents.readable(store, one.run, one.correlation_id)
                if problem is not None:
                    yield problem
                else:
                    loaded |= await store.load([one.run])
        for one in page:
            if one.run in loaded:  # else it was forgotten a moment ago
                yield loaded[one.run]
        before = page[-1].run


async def _total(store: Statistics, correlation_id: str | None) -> int:
    return 1 if correlation_id is not None else sum((await store.count_by_status()).values())


def _progress() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err(), transient=True, disable=not err().is_terminal)
