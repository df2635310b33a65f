"""What comes from outside into an orchestration that waits: signals and decisions. Durable when a call returns."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex

from oraculo.core.access import Actor
from oraculo.core.commands import Approve, Signal
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.vocabulary import Kind, Verdict
from oraculo.core.waiting import wait_at
from oraculo.core.waits import SIGNALS_KEPT_MAX, WaitKind
from oraculo.errors import DecisionError, DuplicateCorrelationError, SignalError, UnknownIdError
from oraculo.ports.engine import Engine
from oraculo.ports.work import Fate, Work


@dataclass(frozen=True, slots=True)
class SignalTaken:
    """`task` is the name of the wait that took the signal; None: it is kept. `new` is False when it came before."""

    task: str | None
    new: bool


class HumanInput:
    """Hands signals and decisions to an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def signal(
        self, correlation_id: str, name: str, dados: bytes, *, key: str | None, actor: Actor
    ) -> SignalTaken:
        """Send a signal. The same `key` again is the same signal. SignalError: it is not taken, and why;
        DuplicateCorrelationError: the key belongs to another signal."""
        given = Signal(key or f"~{token_hex(8)}", name, dados, actor.id)  # handed in again it must not be two
        outcome = (await self._engine.submit([Work(given, correlation_id)]))[0]
        if outcome.fate is Fate.UNKNOWN:
            raise UnknownIdError("orchestration", local_name(correlation_id))
        state = await self._state(correlation_id)
        match outcome.reason:
            case Verdict.APPLIED | Verdict.DUPLICATE:
                taken_by = state.signals[given.id].taken_by
                task = None if taken_by is None else state.plan.profile.name_of(taken_by)
                return SignalTaken(task, outcome.reason == Verdict.APPLIED)
            case Verdict.SIGNAL_REUSED:
                raise DuplicateCorrelationError("Idempotency-Key", key or "")
            case Verdict.UNKNOWN_SIGNAL:
                known = signal_names(state)
                there_are = f"there are {', '.join(known)}" if known else "it waits for no signal"
                raise SignalError("unknown", f"no wait has the signal {name!r}; {there_are}", known)
            case Verdict.TOO_MANY_SIGNALS:
                raise SignalError("full", f"{SIGNALS_KEPT_MAX} signals are kept already; no wait has taken them yet")
            case _:
                raise SignalError("ended", f"{local_name(correlation_id)!r} has ended as {state.status.value}")

    async def decide(
        self, correlation_id: str, approved: bool, by: str, reason: str, *, task: str | None, actor: Actor
    ) -> bool:
        """Decide on a plan or on one of its tasks; return True when it waited for that. `by` is what the human calls
        himself, `actor` who it is. DecisionError: this actor may not decide that, or it is not clear what."""
        state = await self._state(correlation_id)
        if approved and not actor.sees_all and state.actor == actor.id:
            raise DecisionError("own", f"the key {actor.id} submitted this plan; another one has to approve it")
        position = _decided_task(state, task)
        if position is not None:
            roles = wait_at(state, position).roles
            if not actor.may_decide(roles):
                raise DecisionError("role", f"only {', '.join(roles)} or an administrator may decide this", roles)
        said = Approve(approved, by, reason, actor.id, position)
        outcome = (await self._engine.submit([Work(said, correlation_id)]))[0]
        if outcome.fate is Fate.UNKNOWN:
            raise UnknownIdError("orchestration", local_name(correlation_id))
        if position is not None and outcome.fate is not Fate.APPLIED:
            raise DecisionError("not_waiting", "it was decided meanwhile, or has ended")
        return outcome.fate is Fate.APPLIED

    async def _state(self, correlation_id: str) -> Orchestration:
        state = await self._engine.state_of(correlation_id)
        if state is None:
            raise UnknownIdError("orchestration", local_name(correlation_id))
        return state


def signal_names(state: Orchestration) -> list[str]:
    """The signals that waits of the plan have, each once, in the order of the plan."""
    found = {
        wait_at(state, position).signal: None
        for position, task in enumerate(state.plan.tasks)
        if task.kind is Kind.ESPERA
    }
    return [name for name in found if name]


def _decided_task(state: Orchestration, task: str | None) -> int | None:
    """The position of the task that a decision is about; None: it is about the whole plan."""
    names = state.plan.profile.names
    if not names:
        if task is not None:
            raise DecisionError("unknown_task", f"there is no task {task!r}: the plan has no tasks with names")
        return None
    waiting = {names[position]: position for position in sorted(state.held.get(WaitKind.APPROVAL, ()))}
    if task is None:
        if len(waiting) == 1:
            return next(iter(waiting.values()))
        if waiting:
            listed = ", ".join(waiting)
            raise DecisionError("several", f"several tasks wait for a decision: {listed}; say which", list(waiting))
        raise DecisionError("not_waiting", "no task waits for a decision")
    if task in waiting:
        return waiting[task]
    known = [name for position, name in enumerate(names) if _is_approval(state, position)]
    if task not in known:
        there_are = f"there are {', '.join(known)}" if known else "there are none"
        raise DecisionError("unknown_task", f"no task {task!r} is decided by a human; {there_are}", known)
    status = state.tickets[names.index(task)].status.value
    raise DecisionError("not_waiting", f"the task {task!r} does not wait for a decision: it is {status}")


def _is_approval(state: Orchestration, position: int) -> bool:
    wait = state.plan.profile.wait(position)
    return wait is not None and wait.kind is WaitKind.APPROVAL
