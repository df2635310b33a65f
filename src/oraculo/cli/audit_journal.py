"""What the commands of the audit share: the journal, run by run, and what is found wrong with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from oraculo.cli import audit_documents
from oraculo.cli.output import err
from oraculo.errors import ErasedError, UnknownIdError
from oraculo.ports.catalogue import Query
from oraculo.ports.journal import Journal, Recorded
from oraculo.ports.statistics import Statistics
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEventLog
from oraculo.runtime.retention import PRUNED, PRUNED_BEFORE
from oraculo.wire.audit import Problem

RUNS_PER_PAGE = 200  # orchestrations
PROBLEMS_SHOWN = 1000  # problems that are told; all are counted
PRUNINGS_READ = 1000  # the latest ones


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
    erased: int = 0  # of orchestrations whose tenant's key was forgotten
    anchored: int = 0  # orchestrations that were compared with a signed anchor
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
            "erased": self.erased,
            "anchored": self.anchored,
            "problems_total": self.wrong,
            "problems": [one.document() for one in self.problems],
            "head": self.head or None,
        }

    def add(self, found: Problem) -> None:
        self.wrong += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(found)


async def pruned_before(store: SystemEventLog) -> datetime | None:
    """The latest instant up to which `oraculo prune` was asked to forget."""
    noted = [event.body.get(PRUNED_BEFORE) for event in await store.system_events(PRUNINGS_READ, PRUNED)]
    return max((datetime.fromisoformat(str(one)) for one in noted if one), default=None)


async def chains_of(store: Store, correlation_id: str | None) -> AsyncIterator[list[Recorded] | Problem]:
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


async def is_erased(store: Journal, run: int) -> bool:
    """True if the journal of a run is there and cannot be read any more: the key of its tenant was forgotten."""
    try:
        await store.events(run, 0, 1)
    except ErasedError:
        return True
    return False


async def total_of(store: Statistics, correlation_id: str | None) -> int:
    """How many orchestrations `chains_of` gives."""
    return 1 if correlation_id is not None else sum((await store.count_by_status()).values())


def progress_bar() -> Progress:
    """A bar on standard error, where that is a terminal."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err(), transient=True, disable=not err().is_terminal)
