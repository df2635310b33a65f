"""Builders for tests of the core: plans in one line, and a story that hands commands to `step` and keeps the events.

Every step of a story is checked for what must always hold: the events alone rebuild the state, and they are numbered
without gaps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from oraculo.core.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.commands import Cancel, Command, ConfirmDispatch, RecordDelivery, RecordResult, Start, Wake
from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.events import Event
from oraculo.core.plan import Backoff, Plan, Task, graph, stages
from oraculo.core.plan import Notify as Notices
from oraculo.core.state import Orchestration, Ticket, fold
from oraculo.core.step import Step, step
from oraculo.core.ticket_id import ticket_id
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
        notify=Notices(webhook, fila),
    )


def dag(depends: Mapping[str, Sequence[str]], *, attempts: int = 1, timeout: float = 600) -> Plan:
    """One execution per key; each starts when those it names concluded."""
    tasks = {name: execucao(name, attempts=attempts) for name in depends}
    return graph(tasks, depends, timeout=seconds(timeout), backoff=Backoff(), notify=Notices())


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
    ) -> None:
        self.run = run
        self.now = when
        self.journal: list[tuple[datetime, list[Event]]] = []
        self.effects: list[Effect] = []
        self.state: Orchestration | None = None
        self._check = check
        self._answers = 0
        self.started = self.do(Start(run, correlation_id, plan, fingerprint))

    def do(self, command: Command, when: float | None = None) -> Step:
        self.now = self.now if when is None else when
        before = self.state.version if self.state else 0
        done = step(self.state, command, at(self.now))
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
        chosen = positions or tuple(sorted(self._state.owed))
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
            ok, dados, erros, definitivo, ticket_id(self.run, position), attempt, digest=1000 + self._answers
        )

    def bare(self, kind: Kind, name: str | None = None, *, ok: bool = True, digest: int | None = None) -> RecordResult:
        """What a worker that echoes nothing sends."""
        self._answers += 1
        erros = [] if ok else [dict(ERRO)]
        return RecordResult(ok, b'{"n":1}', erros, kind=kind, name=name, digest=digest or 1000 + self._answers)

    def wake(self, when: float) -> Step:
        return self.do(Wake(), when)

    def cancel(self, reason: str = "", *, when: float | None = None) -> Step:
        return self.do(Cancel(reason), when)

    def told(self, notice: int, attempt: int, *, delivered: bool = False, final: bool = False, **more: object) -> Step:
        when = more.pop("when", None)
        return self.do(RecordDelivery(notice, attempt, delivered, final, **more), when)

    # -- what can be seen --------------------------------------------------------------------------------------------

    @property
    def _state(self) -> Orchestration:
        assert self.state is not None
        return self.state

    def ticket(self, position: int) -> Ticket:
        return self._state.tickets[position]

    @property
    def status(self) -> Status:
        return self._state.status

    @property
    def statuses(self) -> list[str]:
        return [ticket.status.value for ticket in self._state.tickets]

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
