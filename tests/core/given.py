"""Builders for tests of the core: plans in one line, and a story that hands commands to `step` and keeps the events.

Every step of a story is checked for what must always hold: the events alone rebuild the state, and they are numbered
without gaps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from oraculo.core import retrying
from oraculo.core.commands import Cancel, Command, ConfirmDispatch, RecordDelivery, RecordResult, Start, Wake
from oraculo.core.digests import digest_of
from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.events import Event
from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.plan import Backoff, NoticeTargets, Plan, Task, graph, stages
from oraculo.core.reuse import Origin, RetryFrom
from oraculo.core.state import Orchestration, fold
from oraculo.core.step import Step, step
from oraculo.core.ticket_id import ticket_id
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import FanIn, Kind, RiskBand, Status, Verdict

T0 = datetime(2025, 10, 14, 12, tzinfo=UTC)
RUN = (1_760_443_200_000 << 20) | 5
ERRO: dict[str, object] = {"codigo": "http_500", "mensagem": "fora do ar", "definitivo": False}


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def coleta(name: str = "youtube", *, timeout: float = 30, attempts: int = 3, parametros: bytes = b"{}") -> Task:
    return Task(Kind.COLETA, name, f"escavador_{name}", parametros, seconds(timeout), attempts)


def execucao(name: str = "relatorio", *, timeout: float = 30, attempts: int = 3, parametros: bytes = b"{}") -> Task:
    return Task(Kind.EXECUCAO, name, f"executador_{name}", parametros, seconds(timeout), attempts)


def plan(
    coletas: int | Sequence[Task] = 1,
    execucoes: int | Sequence[Task] = 0,
    *,
    modo: FanIn = FanIn.TODOS,
    minimo: int | None = None,
    timeout: float = 600,
    attempts: int = 1,
    backoff: Backoff = Backoff(),
    webhook: str | None = None,
    fila: str | None = None,
) -> Plan:
    """Collections `fonte0`, `fonte1`, … and executions `exec0`, … with one attempt each unless said otherwise."""
    if isinstance(coletas, int):
        coletas = [coleta(f"fonte{n}", attempts=attempts) for n in range(coletas)]
    if isinstance(execucoes, int):
        execucoes = [execucao(f"exec{n}", attempts=attempts) for n in range(execucoes)]
    return stages(
        coletas,
        execucoes,
        mode=modo,
        minimo=minimo,
        timeout=seconds(timeout),
        backoff=backoff,
        notify=NoticeTargets(webhook, fila),
    )


def dag(depends: Mapping[str, Sequence[str]], *, attempts: int = 1, timeout: float = 600) -> Plan:
    """One execution per key; each starts when those it names concluded."""
    tasks = {name: execucao(name, attempts=attempts) for name in depends}
    return graph(tasks, depends, timeout=seconds(timeout), backoff=Backoff(), notify=NoticeTargets())


def flow(depends: Mapping[str, Sequence[str]], *, attempts: int = 1, approval: bool = False) -> Plan:
    """A plan of Fluxo C: one task per key; each starts when those it names concluded."""
    nodes = tuple(
        TaskNode(name, "EXECUTE", dependencies=tuple(needs), max_retries=attempts - 1)
        for name, needs in depends.items()
    )
    asked = CognitivePlan("plan-1", "intent-1", nodes, tuple(depends), RiskBand.LOW, requires_approval=approval)
    return plan_of(asked, FlowRules(), T0, lambda worker: f"executador_{worker}", name="abc123")


class Story:
    """An orchestration from its start on. Times are seconds since the start; `now` stays where the last command was."""

    def __init__(
        self,
        plan: Plan,
        *,
        run: int = RUN,
        correlation_id: str = "abc123",
        fingerprint: str = "f",
        when: float = 0.0,
        check: bool = True,
        actor: str | None = None,
    ) -> None:
        self.run = run
        self.now = when
        self.journal: list[tuple[datetime, list[Event]]] = []
        self.effects: list[Effect] = []
        self._check = check
        self._answers = 0
        self.state: Orchestration
        start = Start(run, correlation_id, plan, fingerprint, actor=actor)
        self.started = self.recorded(0, step(None, start, at(when)))

    def do(self, command: Command, when: float | None = None) -> Step:
        self.now = self.now if when is None else when
        return self.recorded(self.state.version, step(self.state, command, at(self.now)))

    def recorded(self, before: int, done: Step) -> Step:
        """Keep one step, the first too; `before` is the version before it."""
        assert done.first == before + 1
        assert done.state.version == before + len(done.events)
        self.state = done.state
        if done.events:
            self.journal.append((done.at, done.events))
            if self._check:
                assert fold(self.journal) == done.state
        self.effects += done.effects
        return done

    # -- what the world does -----------------------------------------------------------------------------------------

    def confirm(self, *positions: int, when: float | None = None) -> Step:
        """The broker confirmed the current messages of these; without positions, of all that are owed."""
        chosen = positions or tuple(sorted(self.state.owed))
        return self.do(ConfirmDispatch([(p, self.ticket(p).attempt) for p in chosen]), when)

    def ok(
        self, position: int, dados: bytes = b'{"n":1}', *, attempt: int | None = None, when: float | None = None
    ) -> Step:
        return self.do(self.answer(position, dados=dados, attempt=attempt), when)

    def fail(
        self, position: int, *, definitivo: bool = False, attempt: int | None = None, when: float | None = None
    ) -> Step:
        return self.do(self.answer(position, ok=False, definitivo=definitivo, attempt=attempt), when)

    def answer(
        self,
        position: int,
        *,
        ok: bool = True,
        dados: bytes = b'{"n":1}',
        definitivo: bool = False,
        attempt: int | None = None,
    ) -> RecordResult:
        """What a worker that echoes ticket_id and tentativa sends; its bytes are unlike those of any other answer."""
        self._answers += 1
        attempt = attempt or self.ticket(position).attempt
        erros = [] if ok else [{**ERRO, "definitivo": definitivo}]
        return RecordResult(
            ok, dados, erros, definitivo, ticket_id(self.run, position), attempt, digest=self._digest(ok, dados, erros)
        )

    def bare(self, kind: Kind, name: str | None = None, *, ok: bool = True, dados: bytes = b'{"n":1}') -> RecordResult:
        """What a worker that echoes nothing sends; its bytes are unlike those of any other answer."""
        self._answers += 1
        erros = [] if ok else [dict(ERRO)]
        return RecordResult(ok, dados, erros, kind=kind, name=name, digest=self._digest(ok, dados, erros))

    def _digest(self, ok: bool, dados: bytes, erros: list[dict[str, object]]) -> int:
        return digest_of(b"%d" % self._answers, ok, dados, erros)

    def wake(self, when: float) -> Step:
        return self.do(Wake(), when)

    def cancel(self, reason: str = "", *, when: float | None = None) -> Step:
        return self.do(Cancel(reason), when)

    def told(
        self,
        notice: int,
        attempt: int,
        *,
        delivered: bool = False,
        final: bool = False,
        when: float | None = None,
        **more: Any,
    ) -> Step:
        return self.do(RecordDelivery(notice, attempt, delivered, final, **more), when)

    # -- what can be seen --------------------------------------------------------------------------------------------

    def ticket(self, position: int) -> Ticket:
        return self.state.tickets[position]

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def statuses(self) -> list[str]:
        return [ticket.status.value for ticket in self.state.tickets]

    @property
    def events(self) -> list[Event]:
        return [event for _, events in self.journal for event in events]

    @property
    def published(self) -> list[tuple[int, int]]:
        """Every (position, attempt) that the world was asked to send, in order."""
        return [ticket for effect in self.effects if isinstance(effect, Publish) for ticket in effect.tickets]

    @property
    def notified(self) -> list[tuple[int, int]]:
        return [(effect.notice, effect.attempt) for effect in self.effects if isinstance(effect, Notify)]


def names(done: Step) -> list[str]:
    return [type(event).__name__ for event in done.events]


def idle(done: Step, verdict: Verdict) -> None:
    """Nothing happened, and the verdict says why."""
    assert (done.events, done.effects, done.verdict) == ([], [], verdict)


def operations(work: Callable[[], object]) -> int:
    """How many bytecode instructions it takes: the same on every machine, unlike time."""
    count = 0

    def trace(frame, event, _arg):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


class Retry(Story):
    """A retry of a story that has ended."""

    def __init__(self, of: Story, mode: RetryFrom = RetryFrom.FAILURES, task: str | None = None) -> None:
        started = of.journal[0][1][0]
        what = retrying.reused(of.state, mode, retrying.positions_of(of.state, task) if task else ())
        chunks = retrying.commands(of.state, what) if what.tasks or what.maps else []
        self.run, self.now, self.journal, self.effects = RUN + 1, of.now, [], []
        self._check, self._answers = True, 0
        origin = Origin(of.run, "abc123", mode, task, bool(chunks))
        start = Start(self.run, "abc123~1", started.plan, "r", origin=origin)
        self.recorded(0, step(None, start, at(self.now)))
        for chunk in chunks:
            self.do(chunk)

    @property
    def sent(self) -> list[int]:
        """The positions of every order so far."""
        return [p for effect in self.effects if isinstance(effect, Publish) for p, _ in effect.tickets]
