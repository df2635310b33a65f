"""What the journal says, in the form of series: name → labels → value, and the observations of each histogram."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core import events as ev
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import Cause, Status
from oraculo.ports.journal import Recorded
from oraculo.wire.flow import telemetry

Labels = frozenset[tuple[str, str]]
P = "orchestration_"
SOON = timedelta(seconds=10)  # a next attempt that begins so soon may overtake the sinks on a busy machine


class Truth:
    def __init__(self, store: Path) -> None:
        self.series: dict[str, Counter[Labels]] = defaultdict(Counter)
        self.observed: dict[str, list[float]] = defaultdict(list)
        self.overtaken: dict[str, list[float]] = defaultdict(list)  # of these a sink may have come too late
        self.endings: dict[str, tuple[float, int]] = {}  # status → sum of durations, how many
        self.open = 0
        self.owing = 0  # orchestrations with orders that no broker has confirmed yet
        self.told: Counter[str] = Counter()  # record of Fluxo C → how often it is told on a topic
        asyncio.run(self._read(store))

    def total(self, name: str, **labels: str) -> int:
        return sum(value for known, value in self.series[name].items() if labels.items() <= dict(known).items())

    def _add(self, name: str, count: int = 1, **labels: str) -> None:
        self.series[name][frozenset(labels.items())] += count

    async def _read(self, path: Path) -> None:
        journals: dict[int, list[Recorded]] = {}
        async with SqliteStore(str(path)) as store:
            position = 0
            while page := await store.tail(position, 2000):
                position = page[-1].position
                for one in page:
                    journals.setdefault(one.run, []).append(one)
            for (queue, verdict), count in (await store.counts()).items():
                self._add(f"{P}messages_total", count, fila=queue, veredito=verdict)
                component = {"orquestrador_resultados": "results", "orquestrador_requisicoes": "requests"}
                if verdict == "duplicate":
                    name = component[queue.partition("@")[0]]
                    self._add("orchestrator_duplicates_detected_total", count, component=name)
            for queue, reason, count in await store.dead_letter_groups():
                self._add(f"{P}dead_letters_total", count, fila=queue, motivo=reason)
                self._add(f"{P}dead_letters_waiting", count, fila=queue)
            for event in await store.system_events(100, "broker_switched"):
                self._add(f"{P}broker_switches_total", de=event.body["de"], para=event.body["para"])
        for journal in journals.values():
            self._journal(journal)

    def _journal(self, journal: list[Recorded]) -> None:
        confirmed: set[tuple[int, int]] = set()
        state = fold([(journal[0].at, journal[0].events[:1])])
        self.open += 1
        self.owing += bool(fold((one.at, one.events) for one in journal).owes)
        for step in journal:
            self._add(f"{P}journal_events_total", len(step.events))
            before = (
                fold((one.at, one.events) for one in journal if one.first < step.first) if step.first > 1 else state
            )
            for event in step.events:
                self._event(event, step, before, confirmed)
            if flow_in(state.plan) is not None:
                after = fold((one.at, one.events) for one in journal if one.first <= step.first)
                self.told.update(one.record for one in telemetry.tell(after, step.first, step.at, step.events))

    def _event(self, event: ev.Event, step: Recorded, state: Orchestration, confirmed: set[tuple[int, int]]) -> None:
        match event:
            case ev.OrchestrationStarted(plan=plan):
                self._add(f"{P}workflows_started_total", status="started", **_band(state))
                for position in range(len(plan.tasks)):
                    self._generated(state, position)
            case ev.CompensationStarted(undone, reason):
                self._add(f"{P}compensations_triggered_total", reason=reason)
                after = fold([(step.at, [event])], copy.deepcopy(state))
                for position in range(after.undoes, len(after.tickets)):
                    self._generated(after, position)
                assert len(undone) == len(after.tickets) - after.undoes
            case ev.OrchestrationClosed(status):
                self.open -= 1
                self._add(f"{P}workflows_completed_total", status=status.value, **_band(state))
                self._observe(f"{P}workflow_duration_seconds", state.started_at, step)
                seconds, count = self.endings.get(status.value, (0.0, 0))
                took = (step.at - state.started_at).total_seconds()
                self.endings[status.value] = (seconds + took, count + 1)
                if step.at >= state.started_at + (state.deadline - state.started_at) * 0.8:
                    self._add(f"{P}deadline_approaching_total")
                if status is Status.TIMEOUT:
                    self._observe(f"{P}deadline_lateness_seconds", state.deadline, step)
            case ev.DispatchConfirmed(tickets):
                confirmed.update(tickets)
                self._add(f"{P}tickets_published_total", len(tickets), status="confirmed")
                first = state.tickets[tickets[0][0]].dispatched_at
                if tickets[0][1] == 1 and first is not None:
                    self._observe(f"{P}ticket_generation_duration_seconds", first, step)
            case ev.TicketConcluded(position, attempt):
                self._published(position, attempt, confirmed)
                self._ticket(position, "concluida", step, state)
            case ev.AttemptFailed(position, attempt, cause):
                self._published(position, attempt, confirmed)
                kind = _type(state, position)
                self._add(f"{P}retries_total", task_type=kind, retry_attempt=str(attempt))
                self._failed(position, kind, cause, step, state)
                if cause is Cause.TIMEOUT and event.retry_at - step.at < SOON:
                    name = f"{P}deadline_lateness_seconds"
                    self.overtaken[name].append(self.observed[name][-1])
            case ev.TicketFailed(position, attempt, status):
                self._published(position, attempt, confirmed)
                self._ticket(position, status.value, step, state)
                cause = Cause.TIMEOUT if status is Status.TIMEOUT else Cause.ERRO
                self._failed(position, _type(state, position), cause, step, state)
                if cause is Cause.TIMEOUT:
                    self._add(f"{P}sla_violations_total", task_type=_type(state, position), **_band(state))
            case ev.TicketsClosed(positions, status):
                for position in positions:
                    self._ticket(position, status.value, step, state)
                    if status is Status.TIMEOUT:
                        self._add(f"{P}sla_violations_total", task_type=_type(state, position), **_band(state))
            case ev.LateAnswerKept():
                self._add(f"{P}late_answers_total")
            case ev.ConflictingAnswerKept():
                self._add(f"{P}conflicting_answers_total")
            case ev.NoticeDelivered():
                self._add(f"{P}notifications_total", resultado="entregue")
            case ev.NoticeFailed():
                self._add(f"{P}notifications_total", resultado="falhou")
            case ev.NoticeGivenUp():
                self._add(f"{P}notifications_total", resultado="desistiu")
            case _:
                pass

    def _published(self, position: int, attempt: int, confirmed: set[tuple[int, int]]) -> None:
        if (position, attempt) not in confirmed:
            self._add(f"{P}tickets_published_total", status="confirmed")

    def _failed(self, position: int, kind: str, cause: Cause, step: Recorded, state: Orchestration) -> None:
        self._add(f"{P}attempt_failures_total", task_type=kind, causa=cause.value)
        due = state.tickets[position].due_at
        if cause is Cause.TIMEOUT and due is not None:
            self._observe(f"{P}deadline_lateness_seconds", due, step)

    def _ticket(self, position: int, status: str, step: Recorded, state: Orchestration) -> None:
        self._add(f"{P}tickets_completed_total", status=status, task_type=_type(state, position))
        since = state.tickets[position].dispatched_at
        if since is not None:
            self._observe(f"{P}ticket_duration_seconds", since, step)
        if state.undoes and position >= state.undoes:
            self._add(f"{P}compensations_executed_total", reason=state.undo_reason or "", status=status)
            self._observe(f"{P}compensation_duration_seconds", since, step)

    def _generated(self, state: Orchestration, position: int) -> None:
        flow = flow_in(state.plan)
        priority = "NORMAL" if flow is None else flow.priority.value
        about = {"task_type": _type(state, position), "priority": priority, **_band(state)}
        self._add(f"{P}tickets_generated_total", **about)

    def _observe(self, name: str, since: object, step: Recorded) -> None:
        self.observed[name].append(max(0.0, (step.at - since).total_seconds()))


def _band(state: Orchestration) -> dict[str, str]:
    flow = flow_in(state.plan)
    return {"risk_band": "none" if flow is None else flow.risk_band.value}


def _type(state: Orchestration, position: int) -> str:
    flow = flow_in(state.plan)
    return state.plan.tasks[position].kind.value if flow is None else flow.specs[position].task_type.value
