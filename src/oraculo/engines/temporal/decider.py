"""Steps that workflows made → journal, many in one transaction, each once.

A step that the journal has already is not written again, so that what is asked twice is not done twice. What no
workflow can decide is decided here: whether a request is new (only then a workflow begins), and what becomes of an
answer to an orchestration whose workflow has ended.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from oraculo.core import policing
from oraculo.core.commands import ConfirmDispatch, RecordResult, Start
from oraculo.core.compensation import completed
from oraculo.core.events import CompensationStarted, OrchestrationStarted, TicketConcluded
from oraculo.core.replay import cause_of, rebuild
from oraculo.core.state import Orchestration
from oraculo.core.step import Step, react
from oraculo.core.vocabulary import Verdict
from oraculo.engines.temporal.commands import LocalCommand, ProjectSteps
from oraculo.engines.temporal.messages import StepReport
from oraculo.errors import OraculoError
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Key, LockRequest, Recorded
from oraculo.ports.work import FATE_OF, Fate, Outcome, Work
from oraculo.runtime import crash
from oraculo.runtime.kernel.cache import StateCache
from oraculo.runtime.kernel.decider import CoreDecider, explain
from oraculo.runtime.kernel.transaction import Transaction


@dataclass(slots=True)
class Launch:
    """A workflow that is to begin; `in_steps`: it reads its steps from the journal, and gives way where there are
    none."""

    state: Orchestration
    started: OrchestrationStarted
    at: datetime
    key: Key | None
    in_steps: bool = False


class WorkflowDecider:
    """The decider of an engine whose workflows decide. `launches` are the workflows that the requests of the
    transaction in the making ask for."""

    def __init__(self, cache: StateCache) -> None:
        self._cache = cache
        self._core = CoreDecider(cache)
        self.launches: list[Launch] = []

    def locks(self, works: Sequence[Work]) -> LockRequest:
        """Read for the core, and the names and keys of steps that may be the first: the process that accepted them may
        be about to write them too."""
        asked = self._core.locks(works)
        first = [work.command.report for work in works if isinstance(work.command, ProjectSteps)]
        first = [report for report in first if report.correlation_id]
        if first:
            asked.names = sorted({*asked.names, *(report.correlation_id for report in first)})
            asked.keys = sorted({*asked.keys, *(report.key[0] for report in first if report.key is not None)})
        return asked

    def decide(self, work: Work, transaction: Transaction) -> Outcome:
        command = work.command
        if isinstance(command, ProjectSteps):
            return self._project(command, transaction)
        if isinstance(command, LocalCommand):
            return self._local(work, command, transaction)
        if command is not None and work.dead is None:
            if isinstance(command, Start):
                return self._start(work, transaction)
            if self._is_open(work):  # its workflow has to hear of it
                return Outcome(Fate.RETRY, "open", work.run, work.correlation_id)
        return self._core.decide(work, transaction)

    def _is_open(self, work: Work) -> bool:
        state = self._cache.get(work.run or self._cache.run_of(work.correlation_id) or 0)
        return state is not None and state.closed_at is None

    def _start(self, work: Work, transaction: Transaction) -> Outcome:
        """Write the first steps here; their effects are left to the workflow, which asks for them wherever it runs."""
        count = len(transaction.steps)
        outcome = self._core.decide(work, transaction)
        made = transaction.steps[count:]
        for done in made:
            started = done.events[0]
            if isinstance(started, OrchestrationStarted):
                in_steps = len(made) > 1 or done.state.plan.unique is not None  # counts only when it is written
                self.launches.append(Launch(done.state, started, done.at, work.key, in_steps))
            done.effects = []
        return outcome

    def _local(self, work: Work, local: LocalCommand, transaction: Transaction) -> Outcome:
        """Step a confirmation of what was sent for a workflow that waits; or any command, when the workflow has
        ended."""
        if not isinstance(local.command, ConfirmDispatch) and self._is_open(work):
            return Outcome(Fate.RETRY, "open", work.run, work.correlation_id)
        count = len(transaction.steps)
        at = max(transaction.at, local.since)
        outcome = self._core.decide(replace(work, command=local.command), transaction, at)
        for done in transaction.steps[count:]:
            local.recorded = Recorded(done.state.run, done.first, done.at, list(done.events))
        return outcome

    def _project(self, projected: ProjectSteps, transaction: Transaction) -> Outcome:
        report = projected.report
        state = self._cache.get(report.run)
        version = 0 if state is None else state.version
        news = [one for one in projected.steps if one.first > version]
        if news and news[0].first != version + 1:
            projected.missing = True
            return Outcome(Fate.RETRY, "missing", report.run)
        for one in news:
            state = self._add(one, state, projected, transaction)
            if one.first == 1 and report.key is not None and report.key[0] not in transaction.keys:
                transaction.add_key(Key(*report.key, report.run))
        if news or not report.steps:  # else all of it was written before
            _count_messages(report, state, transaction)
        return Outcome(Fate.APPLIED, "", report.run, "" if state is None else state.correlation_id)

    def _add(
        self, one: Recorded, state: Orchestration | None, projected: ProjectSteps, transaction: Transaction
    ) -> Orchestration:
        was_closed = state is not None and state.closed_at is not None
        if state is not None:  # a workflow that began anew knows the plan without its parameters
            plan = state.plan
            one.events = [completed(plan, e) if isinstance(e, CompensationStarted) else e for e in one.events]
            if state.policy is not None and state.policy.held:
                one.events = [policing.completed(state, e) if isinstance(e, TicketConcluded) else e for e in one.events]
        state = rebuild([one], state)
        cause = cause_of(one.events)
        if isinstance(cause, RecordResult):
            cause.traceparent = projected.report.answers.get(one.first)
        done = Step(cause, one.at, Verdict.APPLIED, one.first, one.events, state, react(one.events, state))
        projected.news.append(done)
        if one.first == 1:
            self._cache.put(state)
            transaction.hold(state)
        transaction.add(done, was_closed)
        return state


class WorkflowStarter:
    """The guard of this engine's commits: a request is written only when its workflow has begun. `begin` starts
    workflows and gives back the runs for which it could not, and why."""

    def __init__(
        self, decider: WorkflowDecider, begin: Callable[[Sequence[Launch]], Awaitable[dict[int, OraculoError]]]
    ) -> None:
        self._decider = decider
        self._begin = begin

    async def refused(self, transaction: Transaction) -> dict[int, OraculoError]:
        launches, self._decider.launches = self._decider.launches, []
        left = [one for one in launches if one.state.run not in transaction.broken]
        if not left:
            return {}
        crash.point("before_begin")
        return await self._begin(left)


def _count_messages(report: StepReport, state: Orchestration | None, transaction: Transaction) -> None:
    """Count what became of the messages that a workflow read; keep those that it could not use."""
    batch = transaction.batch
    for (queue, broker, verdict), count in report.counts.items():
        batch.counts[_source(queue, broker), FATE_OF[Verdict(verdict)]] += count
    name = None if state is None else state.correlation_id
    for queue, broker, verdict, body in report.refused:
        batch.dead.append(DeadLetter(queue, verdict, explain(verdict), b64decode(body), name))
        batch.counts[_source(queue, broker), Fate.QUARANTINED] += 1


def _source(queue: str, broker: str) -> str:
    return f"{queue}@{broker}" if broker else queue
