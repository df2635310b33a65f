"""`oraculo audit`: the chain of records that follows from the journal, compared with what MongoDB has of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from oraculo.bootstrap.adapters import audit_writer
from oraculo.cli import audit_documents, inputs
from oraculo.cli.anchors import compare, read_anchor
from oraculo.cli.audit_journal import (
    RUNS_PER_PAGE,
    Verdict,
    chains_of,
    is_erased,
    progress_bar,
    pruned_before,
    total_of,
)
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.journal import opened
from oraculo.cli.output import AsJson, emit, note, say
from oraculo.cli.texts import t
from oraculo.core.events import OrchestrationClosed
from oraculo.core.replay import rebuild
from oraculo.ports.cursors import Cursors
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.settings import settings
from oraculo.settings.settings import Settings
from oraculo.wire import audit, event_views, strict_json
from oraculo.wire.anchors import AnchorReader
from oraculo.wire.audit import Problem

if TYPE_CHECKING:
    from oraculo.adapters.sinks.mongo.reader import ChainReader

ENDED = event_views.event_name(OrchestrationClosed)

Id = Annotated[str | None, typer.Argument(metavar="[ID]", help=t("o.audit-id"), show_default=False)]


def verify(
    correlation_id: Id = None,
    pruned: Annotated[
        str | None, typer.Option("--pruned", help=t("o.audit-pruned"), metavar="AGE", show_default=False)
    ] = None,
    anchor: Annotated[Path | None, typer.Option(help=t("o.anchor-file"), show_default=False)] = None,
    public_key: Annotated[str | None, typer.Option(help=t("o.anchor-public"), show_default=False)] = None,
    json: AsJson = False,
) -> None:
    known = settings.load()
    before = None if pruned is None else inputs.ago(pruned)
    anchors = None if anchor is None else read_anchor(anchor, public_key)
    with progress_bar() as progress:
        found = asyncio.run(examine(known, correlation_id, progress, before))
    if anchors is not None:
        asyncio.run(_anchored(known, anchors, found))
    if json:
        emit({"mongodb": bool(known.mongodb.uri), **found.document()})
    else:
        for one in found.problems:
            say(f"{one.kind:<10} {one.correlation_id or '?'} {one.run}:{one.seq}  {one.detail}", "red")
        _summary(found, bool(known.mongodb.uri))
    if found.wrong:
        raise typer.Exit(Exit.FAILED)


async def _anchored(known: Settings, anchors: AnchorReader, found: Verdict) -> None:
    async with opened(known.store) as store:
        await compare(store, anchors, found)


def _summary(found: Verdict, compared: bool) -> None:
    kept = "audit-whole" if compared else "audit-anchored" if found.anchored else "audit-gapless"
    text = t("audit-broken", count=found.wrong) if found.wrong else t(kept, count=found.anchored)
    say(text, "red" if found.wrong else "green")
    note(t("audit-counts", orchestrations=found.orchestrations, records=found.records, documents=found.documents))
    if not compared and not found.anchored:
        note(t("audit-alone"))
    if found.pending:
        note(t("audit-pending", count=found.pending))
    if found.archived:
        note(t("audit-archived", count=found.archived))
    if found.erased:
        note(t("audit-erased", count=found.erased))
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
        with progress_bar() as progress, nullcontext(None) if to is None else open(to, "wb") as file:
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
        task = progress.add_task("", total=await total_of(store, correlation_id))
        async for steps in chains_of(store, correlation_id):
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
        task = progress.add_task("", total=await total_of(store, correlation_id))
        seen: set[int] = set()
        some: list[list[Recorded]] = []
        async for steps in chains_of(store, correlation_id):
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
        if isinstance(run, int) and await is_erased(store, run):
            found.erased += len(records)
        elif pruned is not None and ended is not None and ended < pruned:
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
