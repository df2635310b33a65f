"""Doing the same to every orchestration that a filter names. Durable when a call returns; repeating one is safe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from oraculo.core.access import Actor
from oraculo.core.commands import Cancel, PauseRun, ResumeRun
from oraculo.core.reuse import RetryFrom
from oraculo.core.tenants import in_tenant
from oraculo.core.vocabulary import RUN_STATUSES, Status
from oraculo.errors import BusyError, OraculoError, QuotaError, RetryError, UnknownIdError
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.engine import Engine
from oraculo.ports.work import Fate, Work
from oraculo.runtime.retries import Retries
from oraculo.runtime.tenant_store import TenantStore

RUNS_PER_PAGE = 200
RUNS_PER_CALL = 10_000  # a call that may take minutes is asked again
RUNS_COUNTED_MAX = 1_000_000
ERRORS_SHOWN = 20

_OPEN = tuple(status for status in RUN_STATUSES if not status.final)
_ENDED = tuple(status for status in RUN_STATUSES if status.final)


class BulkAction(StrEnum):
    CANCEL = "cancel"
    RETRY = "retry"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class BulkOrder:
    """What is done to them. `undo` is for cancelling, `start` for trying again."""

    action: BulkAction
    reason: str = ""
    undo: bool = False
    start: RetryFrom = RetryFrom.FAILURES

    def statuses(self) -> Sequence[Status]:
        """The statuses of runs that it can be done to."""
        if self.action is not BulkAction.RETRY:
            return _OPEN
        return _ENDED if self.start is RetryFrom.START else [one for one in _ENDED if one is not Status.CONCLUIDA]


@dataclass(slots=True)
class BulkTally:
    """What became of them. `errors` are the first of those that were refused; `stopped` is why not all were reached."""

    total: int
    done: int = 0
    unchanged: int = 0  # it was so before, or has been tried again already
    refused: int = 0
    errors: list[tuple[str, OraculoError]] = field(default_factory=list)
    stopped: OraculoError | None = None

    @property
    def left(self) -> int:
        return max(0, self.total - self.done - self.unchanged - self.refused)

    def refuse(self, correlation_id: str, error: OraculoError) -> None:
        self.refused += 1
        if len(self.errors) < ERRORS_SHOWN:
            self.errors.append((correlation_id, error))


class BulkDeeds:
    """Does one thing to many orchestrations of a tenant, page by page, the newest first."""

    def __init__(self, engine: Engine, store: TenantStore, retries: Retries) -> None:
        self._engine = engine
        self._store = store
        self._retries = retries

    async def count(self, query: Query, order: BulkOrder) -> int:
        """Count the runs that it would be done to, up to the most that one call counts."""
        narrowed = _narrowed(query, order)
        return 0 if narrowed is None else await self._store.count(narrowed)

    async def carry_out(self, query: Query, order: BulkOrder, actor: Actor) -> BulkTally:
        """Do it to every run that is there now, RUNS_PER_CALL at most; what begins meanwhile is for the next time.
        BusyError, QuotaError: nothing was done, there is no room; once something was, the tally says so."""
        tally = BulkTally(await self.count(query, order))
        async for page in self._pages(query, order):
            try:
                await self._do(page, order, actor, tally)
            except (BusyError, QuotaError) as error:
                if not tally.done:
                    raise
                tally.stopped = error
                break
        return tally

    async def _pages(self, query: Query, order: BulkOrder) -> AsyncIterator[list[Summary]]:
        narrowed = _narrowed(query, order)
        before: int | None = None
        for _ in range(0 if narrowed is None else RUNS_PER_CALL // RUNS_PER_PAGE):
            assert narrowed is not None
            page = await self._store.find(replace(narrowed, before_run=before, limit=RUNS_PER_PAGE))
            if not page:
                return
            before = page[-1].run
            yield page

    async def _do(self, page: list[Summary], order: BulkOrder, actor: Actor, tally: BulkTally) -> None:
        if order.action is BulkAction.RETRY:
            for one in page:
                await self._try_again(one, order, actor, tally)
            return
        command = _command(order, actor)
        works = [Work(command, in_tenant(self._store.tenant, one.correlation_id)) for one in page]
        for one, outcome in zip(page, await self._engine.submit(works), strict=True):
            if outcome.fate is Fate.UNKNOWN:
                tally.refuse(one.correlation_id, UnknownIdError("orchestration", one.correlation_id))
            elif outcome.fate is Fate.APPLIED:
                tally.done += 1
            else:
                tally.unchanged += 1

    async def _try_again(self, one: Summary, order: BulkOrder, actor: Actor, tally: BulkTally) -> None:
        """Try one run again, unless that was done before: then its retry counts in its place. A child is its parent's
        affair."""
        state = await self._engine.state(one.run)
        if (state is not None and state.plan.parent is not None) or await self._retries.of(one.run):
            tally.unchanged += 1
            return
        try:
            made = await self._retries.retry(one.correlation_id, order.start, key=None, traceparent=None, actor=actor)
        except (RetryError, UnknownIdError) as error:
            tally.refuse(one.correlation_id, error)
            return
        tally.done += made.new
        tally.unchanged += not made.new


def _narrowed(query: Query, order: BulkOrder) -> Query | None:
    """The query for runs that it can be done to; None when the filter leaves none."""
    fitting = [one for one in order.statuses() if not query.status or one in query.status]
    paused = order.action is BulkAction.RESUME if order.action in (BulkAction.PAUSE, BulkAction.RESUME) else None
    if not fitting or (paused is not None and query.paused is (not paused)):
        return None
    return replace(query, status=fitting, paused=query.paused if paused is None else paused, limit=RUNS_COUNTED_MAX)


def _command(order: BulkOrder, actor: Actor) -> Cancel | PauseRun | ResumeRun:
    match order.action:
        case BulkAction.PAUSE:
            return PauseRun(order.reason, actor.id)
        case BulkAction.RESUME:
            return ResumeRun(order.reason, actor.id)
        case _:
            return Cancel(order.reason, actor.id, order.undo)
