"""Metrics: readings of the journal, so that every engine gives the same ones.

Names are those of the seeds where they name one. No label ever holds an id.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from oraculo.adapters.sinks.prometheus import families as f
from oraculo.adapters.sinks.prometheus.deadlines import Deadlines, Open
from oraculo.adapters.sinks.prometheus.readings import Readings, Sources
from oraculo.core import events as ev
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import Flow, Spec, flow_in
from oraculo.core.priority import ticket_score
from oraculo.core.reasons import MESSAGE_REFUSED
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.core.vocabulary import Cause, Kind, Status
from oraculo.errors import StoreError
from oraculo.ports.broker_group import group_of
from oraculo.ports.catalogue import Catalogue
from oraculo.ports.clock import Clock
from oraculo.ports.dead_letters import DeadLetters
from oraculo.ports.journal import Batch
from oraculo.ports.observer import EventsByType
from oraculo.ports.store import Store
from oraculo.runtime.flow.open_plans import open_plans
from oraculo.wire.names import REQUESTS, RESULTS

log = structlog.get_logger("oraculo.metrics")

MAX_DEAD_LETTER_SERIES = 500  # series of dead letters
LOOP_CHECK_INTERVAL_S = 0.5  # seconds between two looks at the event loop
DEAD_LETTERS_INTERVAL_S = 5.0  # seconds between two looks at the table of dead letters
DEADLINES_RECALLED = 10_000  # open orchestrations of earlier processes, those with the nearest deadlines
DEADLINES_CHECKED = 100  # rounds of looking whether the most urgent ones are still open
_COMPONENTS = {REQUESTS: "requests", RESULTS: "results"}

Counts = Tally[tuple[Any, ...]]
Events = list[tuple[Step, Any]]  # of one class


class Metrics:
    """One registry per process. `saw` is called after each commit; gauges are read at each scrape."""

    def __init__(self) -> None:
        self._causes: set[tuple[str, str]] = set()
        self._children: dict[tuple[Any, ...], Any] = {}
        self._deadlines = Deadlines()
        self._clock: Clock | None = None
        self._flush: Callable[[], None] = lambda: None
        self.registry = CollectorRegistry()
        self.families = f.Families(self.registry)
        self._published = (self.families.published, "confirmed")
        done = Status.CONCLUIDA.value
        self._generated = {kind: (self.families.generated, kind.value, f.NO_BAND, f.PRIORITY) for kind in Kind}
        for key in self._generated.values():
            self._child(key)  # shown from the start, with 0
        self._good = {
            kind: ((self.families.tickets, done, kind.value), self.families.ticket_duration.labels(done, kind.value))
            for kind in Kind
        }
        self.readings = Readings()
        self.registry.register(self.readings)
        self.readings.remaining = self._least
        ProcessCollector(registry=self.registry)
        self._on: dict[type, Callable[[Events, Counts], None]] = {
            ev.TicketConcluded: self._concluded,
            ev.DispatchConfirmed: self._confirmed,
            ev.OrchestrationStarted: self._started,
            ev.OrchestrationClosed: _each(self._closed),
            ev.AttemptFailed: _each(self._attempt_failed),
            ev.TicketFailed: _each(self._ticket_failed),
            ev.TicketsClosed: _each(self._tickets_closed),
            ev.WaitEnded: _each(self._wait_ended),
            ev.CompensationStarted: _each(self._undoing),
            ev.PlanGrown: _each(self._grown),
            ev.MapRestored: _each(self._restored),
            ev.TicketsReused: _each(self._reused),
            ev.MapEnded: _each(self._body_ended),
            ev.LoopEnded: _each(self._body_ended),
            ev.ChildEnded: _each(self._body_ended),
            ev.LateAnswerKept: _counted(self.families.late),
            ev.ConflictingAnswerKept: _counted(self.families.conflicts),
            ev.NoticeDelivered: _counted(self.families.notices, "entregue"),
            ev.NoticeFailed: _counted(self.families.notices, "falhou"),
            ev.NoticeGivenUp: _counted(self.families.notices, "desistiu"),
        }

    def watch(self, sources: Sources, flush: Callable[[], None]) -> None:
        """Read these parts of the process when metrics are scraped; `flush` shows first what was committed lately."""
        self._flush = flush
        self._clock = sources.clock
        self.readings.sources = sources
        for source, target in permutations(group_of(sources.broker).breakers, 2):
            self.families.switches.labels(source, target)

    async def run(self, store: Store) -> None:
        """For ever: look at the event loop, the deadlines, and now and then at what the store has."""
        await self.recall_deadlines(store)
        clock = asyncio.get_running_loop().time
        look_again = 0.0
        while True:
            due = clock() + LOOP_CHECK_INTERVAL_S
            await asyncio.sleep(LOOP_CHECK_INTERVAL_S)
            self.families.lag.observe(max(0.0, clock() - due))
            self._approaching()
            if clock() >= look_again:
                look_again = clock() + DEAD_LETTERS_INTERVAL_S
                await self.count_dead_letters(store)
                await self.check_deadlines(store)

    async def count_dead_letters(self, store: DeadLetters) -> None:
        found: Tally[str] = Tally()
        try:
            groups = await store.dead_letter_groups()
        except Exception:  # `orchestration_store_up` says it; what was found last stays
            return
        for queue, reason, count in groups:
            found[self._known(queue, reason)[0]] += count
        self.readings.dead = {**dict.fromkeys((REQUESTS, RESULTS), 0), **found}

    # -- the journal ---------------------------------------------------------------------------------------------------

    def saw(self, batch: Batch, told: EventsByType) -> None:
        self.readings.traffic.saw(batch, told)
        tally: Counts = Tally()
        deadlines, steps = self._deadlines, batch.steps
        known = deadlines.open
        for step in steps:
            if step.state.run not in known:
                deadlines.saw(step.state)
        for kind, events in told.items():
            count = self._on.get(kind)
            if count is not None:
                count(events, tally)
        if steps:
            self.families.events.inc(sum(map(len, told.values())))
            self.families.commits.observe(len(steps))
        for (queue, verdict), count_of in batch.counts.items():
            tally[self.families.messages, queue, str(verdict)] += count_of
            if verdict == "duplicate":
                component = _COMPONENTS.get(queue.partition("@")[0])
                if component:
                    tally[self.families.duplicates, component] += count_of
        for dead in batch.dead:
            tally[self.families.dead, *self._known(dead.queue, dead.reason)] += 1
        for key, count_of in tally.items():
            self._child(key).inc(count_of)

    def _child(self, key: tuple[Any, ...]) -> Any:
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = key[0].labels(*key[1:]) if len(key) > 1 else key[0]
        return found

    def _known(self, queue: str, reason: str) -> tuple[str, str]:
        """The label values of a dead letter. Writers choose both, so beyond a number all share a series."""
        if (queue, reason) not in self._causes and len(self._causes) >= MAX_DEAD_LETTER_SERIES:
            return ("outras", "outros")
        self._causes.add((queue, reason))
        return (queue, reason)

    def _started(self, events: Events, tally: Counts) -> None:
        plain = 0
        kinds: dict[Kind, int] = {}
        for _, event in events:
            plan = event.plan
            if event.origin is not None:
                tally[self.families.retried, event.origin.mode.value] += 1
            flow = flow_in(plan)
            if flow is None:
                plain += 1
                for task in plan.tasks:
                    kinds[task.kind] = kinds.get(task.kind, 0) + 1
            else:
                tally[self.families.started, "started", flow.risk_band.value] += 1
                self._made(flow, flow.specs, tally)
        if plain:
            tally[self.families.started, "started", f.NO_BAND] += plain
            for kind, count in kinds.items():
                tally[self._generated[kind]] += count

    def _made(self, flow: Flow, specs: Sequence[Spec], tally: Counts) -> None:
        for spec in specs:
            tally[self.families.generated, spec.task_type.value, flow.risk_band.value, flow.priority.value] += 1

    def _grown(self, step: Step, event: ev.PlanGrown, tally: Counts) -> None:
        if event.count:
            tally[self._generated[step.state.plan.tasks[event.first].kind]] += event.count

    def _restored(self, step: Step, event: ev.MapRestored, tally: Counts) -> None:
        if event.total:
            tally[self._generated[step.state.plan.tasks[event.first].kind]] += event.total

    def _reused(self, step: Step, event: ev.TicketsReused, tally: Counts) -> None:
        tally[self.families.reused,] += len(event.tickets)

    def _body_ended(self, step: Step, event: ev.MapEnded | ev.LoopEnded | ev.ChildEnded, tally: Counts) -> None:
        self._ended(step, event.ticket, event.status.value, tally)

    def _undoing(self, step: Step, event: ev.CompensationStarted, tally: Counts) -> None:
        tally[self.families.compensations, event.reason] += 1
        flow = flow_in(step.state.plan)
        if flow is not None:
            self._made(flow, flow.specs[step.state.undoes :], tally)
            return
        for position in range(step.state.undoes, len(step.state.tickets)):
            tally[self._generated[step.state.plan.tasks[position].kind]] += 1

    def _closed(self, step: Step, event: ev.OrchestrationClosed, tally: Counts) -> None:
        state, status = step.state, event.status._value_
        band = _band(state)
        tally[self.families.completed, status, band] += 1
        self.families.duration.labels(status, band).observe((step.at - state.started_at).total_seconds())
        if event.status is Status.TIMEOUT and state.deadline is not None:
            self.families.lateness.labels(f.WORKFLOW).observe((step.at - state.deadline).total_seconds())
        if self._deadlines.ended(state.run, step.at):
            tally[self.families.approaching,] += 1

    def _concluded(self, events: Events, tally: Counts) -> None:
        """What happens most of all: as `_ended` and `_overtaken`, with all that can be known beforehand."""
        published = 0
        durations: dict[Kind, list[float]] = {}
        for step, event in events:
            state, position = step.state, event.ticket
            plan, ticket = state.plan, state.tickets[position]
            if not ticket.confirmed >> event.attempt & 1:
                published += 1
            if not plan.profile.has_specs and ticket.dispatched_at is not None:
                seconds = durations.setdefault(plan.tasks[position].kind, [])
                seconds.append((step.at - ticket.dispatched_at).total_seconds())
            else:
                self._ended(step, position, "concluida", tally)
        if published:
            tally[self._published] += published
        for kind, seconds in durations.items():
            key, distribution = self._good[kind]
            tally[key] += len(seconds)
            distribution.observe_all(seconds)

    def _ended(self, step: Step, position: int, status: str, tally: Counts) -> None:
        state = step.state
        kind = _type(state, position)
        tally[self.families.tickets, status, kind] += 1
        since = state.tickets[position].dispatched_at
        if state.undoes and position >= state.undoes:
            reason = state.undo_reason or ""
            tally[self.families.undone, reason, status] += 1
            if since is not None:
                self.families.undo_duration.labels(reason, status).observe((step.at - since).total_seconds())
        if since is not None:
            self.families.ticket_duration.labels(status, kind).observe((step.at - since).total_seconds())

    def _wait_ended(self, step: Step, event: ev.WaitEnded, tally: Counts) -> None:
        self._ended(step, event.ticket, event.status.value, tally)

    def _scored(self, state: Orchestration, tickets: Sequence[tuple[int, int]]) -> None:
        scores = self.families.priority_score.labels(_band(state))
        for position, _attempt in tickets:
            scores.observe(ticket_score(state, position).value)

    def _confirmed(self, events: Events, tally: Counts) -> None:
        published, durations = 0, []
        for step, event in events:
            published += len(event.tickets)
            if step.state.plan.profile.has_ceiling:
                self._scored(step.state, event.tickets)
            position, attempt = event.tickets[0]
            since = step.state.tickets[position].dispatched_at
            if attempt == 1 and since is not None:
                durations.append((step.at - since).total_seconds())
        tally[self._published] += published
        if durations:
            self.families.generation.labels().observe_all(durations)

    def _attempt_failed(self, step: Step, event: ev.AttemptFailed, tally: Counts) -> None:
        state, position = step.state, event.ticket
        kind = _type(state, position)
        number = str(event.attempt) if event.attempt < f.MOST_RETRIES else f"{f.MOST_RETRIES}+"
        tally[self.families.retries, kind, number] += 1
        tally[self.families.attempt_failures, kind, event.cause.value] += 1
        self._overtaken(state, position, event.attempt, tally)
        if event.cause is Cause.TIMEOUT and state.tickets[position].attempt == event.attempt:
            self._ticket_late(step, position)  # unless the next attempt has begun meanwhile

    def _ticket_failed(self, step: Step, event: ev.TicketFailed, tally: Counts) -> None:
        position = event.ticket
        kind = _type(step.state, position)
        self._ended(step, position, event.status.value, tally)
        if event.erros and event.erros[0].get("codigo") == MESSAGE_REFUSED:
            tally[self.families.published, "refused"] += 1
        else:
            self._overtaken(step.state, position, event.attempt, tally)
        cause = Cause.TIMEOUT if event.status is Status.TIMEOUT else Cause.ERRO
        tally[self.families.attempt_failures, kind, cause.value] += 1
        if cause is Cause.TIMEOUT:
            tally[self.families.violations, _band(step.state), kind] += 1
            self._ticket_late(step, position)

    def _tickets_closed(self, step: Step, event: ev.TicketsClosed, tally: Counts) -> None:
        for position in event.tickets:
            self._ended(step, position, event.status.value, tally)
            if event.status is Status.TIMEOUT:
                tally[self.families.violations, _band(step.state), _type(step.state, position)] += 1

    def _overtaken(self, state: Orchestration, position: int, attempt: int, tally: Counts) -> None:
        """An answer that came before the broker's confirmation was recorded is as good as the confirmation."""
        if not state.tickets[position].confirmed >> attempt & 1:
            tally[self._published] += 1

    def _ticket_late(self, step: Step, position: int) -> None:
        task, started = step.state.plan.tasks[position], step.state.tickets[position].started_at
        if started is not None:
            late = (step.at - started - task.timeout).total_seconds()
            self.families.lateness.labels(task.kind.value).observe(late)

    def _approaching(self) -> None:
        if self._clock is not None:
            count = self._deadlines.approaching(self._clock.now())
            if count:
                self.families.approaching.inc(count)

    def _least(self) -> dict[str, float]:
        return {} if self._clock is None else self._deadlines.least(self._clock.now())

    async def recall_deadlines(self, store: Store) -> None:
        """Note what earlier processes opened and did not end. Where the store is away, that waits for its events."""
        now = None if self._clock is None else self._clock.now()
        try:
            for one in await store.nearest_deadlines(DEADLINES_RECALLED):
                if one.tipo != TIPO and one.deadline is not None:
                    known = Open(one.correlation_id, one.created_at, one.deadline, f.NO_BAND)
                    known.noticed = now is not None and now >= known.threshold
                    self._deadlines.opened(one.run, known)
            async for state in open_plans(store):
                self._deadlines.saw(state)
        except StoreError as error:
            log.warning("deadlines of earlier processes are not known: store unavailable", error=str(error))

    async def check_deadlines(self, store: Catalogue) -> None:
        """Forget those that another process has ended: asked of the most urgent ones, which are shown."""
        with contextlib.suppress(StoreError):
            for _ in range(DEADLINES_CHECKED):
                ended = []
                for run, one in list(self._deadlines.urgent()):
                    found = await store.summary(one.correlation_id)
                    if found is None or found.run != run or found.closed_at is not None:
                        ended.append(run)
                for run in ended:
                    self._deadlines.forget(run)
                if not ended:
                    return

    # -- the scraper ---------------------------------------------------------------------------------------------------

    def exposition(self) -> bytes:
        self._flush()
        self._approaching()
        return generate_latest(self.registry)

    def asked_workflow(self, query: str, status: str) -> None:
        self.families.queries.labels(query, status).inc()

    def wrote(self, collection: str, operation: str, seconds: float) -> None:
        """To MongoDB."""
        self.families.mongodb.labels(collection, operation).observe(seconds)

    def schedule_instants(self, outcome: str, number: int) -> None:
        self.families.schedule_instants.labels(outcome).inc(number)

    def switched(self, source: str, target: str) -> None:
        self.families.switches.labels(source, target).inc()


def _band(state: Orchestration) -> str:
    return state.plan.profile.band or f.NO_BAND


def _type(state: Orchestration, position: int) -> str:
    """What the plan calls the work of a ticket, else whether it collects or executes."""
    return state.plan.profile.task_type(position) or state.plan.tasks[position].kind._value_


def _each(count: Callable[[Step, Any, Counts], None]) -> Callable[[Events, Counts], None]:
    def every(events: Events, tally: Counts) -> None:
        for step, event in events:
            count(step, event, tally)

    return every


def _counted(*key: Any) -> Callable[[Events, Counts], None]:
    def add(events: Events, tally: Counts) -> None:
        tally[key] += len(events)

    return add
