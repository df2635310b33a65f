"""Steps that workflows made → journal, many in one transaction, each once.

A step that the journal has already is not written again: whoever is asked twice does nothing twice. What no workflow
can decide is decided here: whether a request is new (only then a workflow begins), and what becomes of an answer to an
orchestration whose workflow has ended.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from oraculo.core.commands import ConfirmDispatch, RecordResult, Start
from oraculo.core.events import DispatchConfirmed, OrchestrationStarted
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import Step, react
from oraculo.core.verdict import document
from oraculo.core.vocabulary import Verdict
from oraculo.engines.temporal.parcels import Made
from oraculo.errors import EngineUnavailableError
from oraculo.ports.clock import Clock
from oraculo.ports.store import Asked, DeadLetter, Key, Recorded, Store
from oraculo.runtime import crash
from oraculo.runtime.handle import Handled, Handler, explain
from oraculo.runtime.work import FATE_OF, Closed, Fate, Outcome, Work
from oraculo.wire import records, strict_json

EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Projection(Work):
    """What a workflow made. `news` are the steps that the journal did not have."""

    made: Made | None = None
    news: list[Step] = field(default_factory=list)
    missing: bool = False  # steps between the journal's last and the first of these are not known here

    @property
    def steps(self) -> list[Recorded]:
        assert self.made is not None
        return [Recorded(self.run, first, at, events) for first, at, events in self.made.steps]


@dataclass(slots=True)
class Own(Work):
    """A command that is stepped here, not before `since`; `recorded` is what became true."""

    since: datetime = EARLIEST
    recorded: Recorded | None = None


@dataclass(slots=True)
class Launch:
    """A workflow that is to begin."""

    state: Orchestration
    started: OrchestrationStarted
    at: datetime
    key: Key | None


Failures = dict[int, EngineUnavailableError]  # run → why


class ProjectingHandler(Handler):
    """`launch` begins workflows; it gives back the runs for which it could not, and why."""

    def __init__(self, store: Store, clock: Clock, launch: Callable[[Sequence[Launch]], Awaitable[Failures]]) -> None:
        super().__init__(store, clock)
        self._launch = launch
        self._launches: list[Launch] = []

    def _asked(self, works: Sequence[Work]) -> Asked:
        asked = super()._asked(works)
        for work in works:
            if isinstance(work, Projection) and work.made is not None and work.made.correlation_id:
                # Whoever accepted it may be about to write its first step.
                asked.names = sorted({*asked.names, work.made.correlation_id})
                if work.made.key is not None:
                    asked.keys = sorted({*asked.keys, work.made.key[0]})
        return asked

    def _one(self, work: Work, now: datetime, handled: Handled, keys: dict[str, Key], broken: set[int]) -> Outcome:
        if isinstance(work, Projection):
            return self._project(work, handled, keys)
        if isinstance(work, Own):
            return self._own(work, max(now, work.since), handled, keys, broken)
        command = work.command
        if isinstance(command, Start) and work.dead is None:
            count = len(handled.batch.steps)
            outcome = super()._one(work, now, handled, keys, broken)
            for done in handled.batch.steps[count:]:
                started = done.events[0]
                assert isinstance(started, OrchestrationStarted)
                self._launches.append(Launch(done.state, started, done.at, work.key))
                done.effects = []  # the workflow asks for them, wherever it runs
            return outcome
        if command is not None and work.dead is None and self._open(work):
            return Outcome(Fate.RETRY, "open", work.run, work.correlation_id)  # its workflow has to hear of it
        return super()._one(work, now, handled, keys, broken)

    def _open(self, work: Work) -> bool:
        state = self.cache.get(work.run or self.cache.run_of(work.correlation_id) or 0)
        return state is not None and state.closed_at is None

    def _own(self, work: Own, now: datetime, handled: Handled, keys: dict[str, Key], broken: set[int]) -> Outcome:
        """A confirmation of what was sent for a workflow that waits; or anything, when the workflow has ended."""
        if not isinstance(work.command, ConfirmDispatch) and self._open(work):
            return Outcome(Fate.RETRY, "open", work.run, work.correlation_id)
        count = len(handled.batch.steps)
        outcome = super()._one(work, now, handled, keys, broken)
        for done in handled.batch.steps[count:]:
            work.recorded = Recorded(done.state.run, done.first, done.at, list(done.events))
        return outcome

    def _project(self, work: Projection, handled: Handled, keys: dict[str, Key]) -> Outcome:
        made, batch = work.made, handled.batch
        assert made is not None
        state = self.cache.get(work.run)
        version = 0 if state is None else state.version
        news = [one for one in work.steps if one.first > version]
        if news and news[0].first != version + 1:
            work.missing = True
            return Outcome(Fate.RETRY, "missing", work.run)
        for one in news:
            state = self._add(one, state, work, handled)
            if one.first == 1 and made.key is not None and made.key[0] not in keys:
                key = Key(*made.key, work.run)
                batch.keys.append(key)
                keys[key.key] = key
        if news or not made.steps:  # else all of it was written before
            self._say(made, state, handled)
        return Outcome(Fate.APPLIED, "", work.run, "" if state is None else state.correlation_id)

    def _add(self, one: Recorded, state: Orchestration | None, work: Projection, handled: Handled) -> Orchestration:
        was_closed = state is not None and state.closed_at is not None
        state = fold([(one.at, one.events)], state)
        cause = records.cause_of(one.run, one.events)
        if isinstance(cause, RecordResult) and work.made is not None:
            cause.traceparent = work.made.answers.get(one.first)
        done = Step(cause, one.at, Verdict.APPLIED, one.first, one.events, state, react(one.events, state))
        work.news.append(done)
        handled.batch.steps.append(done)
        if one.first == 1:
            self.cache.put(state)
        if state.closed_at is not None and not was_closed:
            result = strict_json.dumps(document(state, one.at))
            handled.batch.results[state.run] = result
            handled.closed.append(Closed(state, result))
        return state

    @staticmethod
    def _say(made: Made, state: Orchestration | None, handled: Handled) -> None:
        """What became of the messages; those that nobody can use are kept."""
        batch = handled.batch
        for (queue, broker, verdict), count in made.counts.items():
            batch.counts[_source(queue, broker), FATE_OF[Verdict(verdict)]] += count
        name = None if state is None else state.correlation_id
        for queue, broker, verdict, body in made.refused:
            batch.dead.append(DeadLetter(queue, verdict, explain(verdict), b64decode(body), name))
            batch.counts[_source(queue, broker), Fate.QUARANTINED] += 1

    async def _before_commit(
        self, handled: Handled, outcomes: list[tuple[Work, Outcome]]
    ) -> list[tuple[Work, Outcome]]:
        launches, self._launches = self._launches, []
        left = [one for one in launches if one.state.run not in handled.broken]
        if left:
            self._settled.clear()  # nobody may see what is not written yet
            crash.point("before_begin")
            try:
                failed = await self._launch(left)
            finally:
                self._settled.set()
            if failed:
                outcomes = self._without(set(failed), handled, outcomes, next(iter(failed.values())))
        return outcomes


def _source(queue: str, broker: str) -> str:
    return f"{queue}@{broker}" if broker else queue


def confirmation(recorded: Recorded | None) -> DispatchConfirmed | None:
    """The step as a confirmation, if it is one."""
    first = recorded.events[0] if recorded is not None else None
    return first if isinstance(first, DispatchConfirmed) else None


def is_for_workflow(work: Work) -> bool:
    """A command for an orchestration that exists; its workflow has to hear of it."""
    if isinstance(work, Projection | Own) or work.dead is not None:
        return False
    return work.command is not None and not isinstance(work.command, Start)
