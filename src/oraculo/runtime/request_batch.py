"""Many requests in one call, each accepted or refused on its own, in as few transactions as possible."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from oraculo.chunks import chunks_by_size
from oraculo.core.access import Actor
from oraculo.core.commands import Start
from oraculo.errors import BusyError, OraculoError, QuotaError, StoreError, StoreUnavailableError
from oraculo.ports.engine import CommandSink
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime import crash
from oraculo.runtime.requests import Accepted, RequestIntake, accepted_of
from oraculo.runtime.turns import Turns
from oraculo.wire.requests import Requisicao

TRANSACTION_MAX_TASKS = 250  # deciding on them is one turn of the event loop

Answer = Accepted | OraculoError


class BatchIntake:
    """Accepts lists of requests. A refusal is an error in the place of its answer and costs the others nothing."""

    def __init__(self, intake: RequestIntake, engine: CommandSink) -> None:
        self._intake = intake
        self._engine = engine

    async def accept_each(
        self,
        wanted: Sequence[Requisicao | OraculoError],
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        *,
        actor: Actor,
    ) -> list[Answer]:
        """Return an answer for each, in order; what was accepted is durable. An error in `wanted` is a request that
        could not be read. A key is one for each place of the list."""
        await self._intake.refresh_task_types(one for one in wanted if isinstance(one, Requisicao))
        turns = Turns()
        found: list[Work | OraculoError] = []
        with ExitStack() as under_way:
            gate = _Gate(self._intake, self._engine, actor, under_way)
            for place, one in enumerate(wanted):
                key = None if idempotency_key is None else f"{idempotency_key}#{place}"
                found.append(await gate.work(one, key, traceparent))
                await turns.pause()
            outcomes = await self._submit([one for one in found if isinstance(one, Work)])
        crash.point("before_answer")
        told = iter(outcomes)
        answers = [one if isinstance(one, OraculoError) else _answer(one, next(told)) for one in found]
        self._intake.count(one for one in answers if isinstance(one, Accepted))
        return answers

    async def _submit(self, works: Sequence[Work]) -> list[Outcome]:
        """Hand them in piece by piece, so that no transaction holds the event loop. Once the store fails, what has not
        been handed in is not tried either."""
        outcomes: list[Outcome] = []
        for some in chunks_by_size(works, TRANSACTION_MAX_TASKS, _tasks):
            try:
                outcomes += await self._engine.submit(some, piecewise=True)
            except (StoreError, BusyError):
                if not outcomes:
                    raise
                outcomes += [Outcome(Fate.RETRY)] * (len(works) - len(outcomes))
                break
        return outcomes


class _Gate:
    """Turns requests into work until a limit is reached; from then on every one is refused with that limit."""

    def __init__(self, intake: RequestIntake, engine: CommandSink, actor: Actor, under_way: ExitStack) -> None:
        self._intake = intake
        self._engine = engine
        self._actor = actor
        self._under_way = under_way
        self._count = 0
        self._full: BusyError | QuotaError | None = None

    async def work(
        self, wanted: Requisicao | OraculoError, key: str | None, traceparent: str | None
    ) -> Work | OraculoError:
        if isinstance(wanted, OraculoError):
            return wanted
        try:
            work = self._intake.work(wanted, key, traceparent, actor=self._actor)
            if self._full is None:
                self._engine.admit(self._count + 1)
                await self._intake.quotas.check(self._actor)
        except (BusyError, QuotaError) as error:
            self._full = error
        except OraculoError as error:
            return error
        if self._full is not None:
            return self._full
        self._under_way.enter_context(self._intake.quotas.under_way(self._actor))
        self._count += 1
        return work


def _tasks(work: Work) -> int:
    return len(work.command.plan.tasks) if isinstance(work.command, Start) else 0


def _answer(work: Work, outcome: Outcome) -> Answer:
    if outcome.fate is Fate.RETRY:
        return StoreUnavailableError("it was not accepted; hand it in again")
    try:
        return accepted_of(work, outcome)
    except OraculoError as error:
        return error
