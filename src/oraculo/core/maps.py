"""The rules of maps: when items are taken in, which of them start, and how a map ends.

A map asks for its items like any task for its expressions (`state.asks`). Its rows come as `Grow`, chunk by chunk;
with the last one the first items start. The gate over its items decides when they are enough.
"""

from __future__ import annotations

from collections.abc import Iterable

from oraculo.core import fan_in, policing
from oraculo.core.blocks import Block, Rounds, map_at
from oraculo.core.commands import Grow
from oraculo.core.events import (
    Event,
    FanInClosed,
    MapEnded,
    PlanGrown,
    Resolved,
    TicketsClosed,
    TicketsReused,
)
from oraculo.core.fan_in import POLICIES, GateCount
from oraculo.core.plan import MAX_TASKS, Gate, Plan
from oraculo.core.reasons import Reason, ReasonCode, because, expression_fault
from oraculo.core.resolution import Obstacle, Outcome, Resolution
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import FanIn, Phase, Status, Verdict

_SERVED_BY_NOTHING = (FanIn.TODOS, FanIn.TODAS_OK)  # are met by items none of which failed, also by none at all


# -- growing -----------------------------------------------------------------------------------------------------------


def refusal(plan: Plan, tickets: int, owner: int, total: int) -> Resolution | None:
    """Why a map cannot have so many items, in a run that has so many tickets; None when it can."""
    spec = map_at(plan, owner)
    assert spec is not None
    sent = tickets - sum(1 for task in plan.tasks if not task.kind.is_sent)  # maps themselves are no work
    if sent + total > MAX_TASKS:
        detail = f"{total} items; the run has {sent} other tickets and may have {MAX_TASKS} in all"
        return Resolution(owner, Outcome.FAIL, word="para_cada", detail=detail, obstacle=Obstacle.ITEMS)
    mode = spec.join.mode
    needed = POLICIES[mode].needed(total) if spec.join.minimo is None else spec.join.minimo
    if needed > total and mode not in _SERVED_BY_NOTHING:
        detail = f"{mode.value} needs {needed} and there are {total} items"
        return Resolution(owner, Outcome.FAIL, word="fan_in", detail=detail, obstacle=Obstacle.FAN_IN)
    return None


def growing_in(state: Orchestration) -> Block | None:
    """The map some of whose items are there, and not all."""
    last = None if state.blocks is None or not state.blocks.all else state.blocks.all[-1]
    return last if isinstance(last, Block) and not last.complete else None


def grow(state: Orchestration, command: Grow) -> tuple[list[Event], Verdict]:
    """A chunk counts when it is the next one of a map that asks for its items, and no other map is growing."""
    owner, growing = command.owner, growing_in(state)
    known = 0 if growing is None else growing.count
    wanted = owner in state.asks if growing is None else growing.owner == owner
    if not wanted or command.offset != known or state.status.final:
        return [], Verdict.IDLE
    refused = refusal(state.plan, len(state.tickets), owner, command.total) if growing is None else None
    if refused is not None:
        return [Resolved([refused])], Verdict.APPLIED
    event = PlanGrown(
        owner,
        len(state.tickets),
        known,
        command.count,
        command.total,
        command.rows,
        command.template,
        command.idle,
    )
    return [event], Verdict.APPLIED


# -- running -----------------------------------------------------------------------------------------------------------


def begun(state: Orchestration, event: PlanGrown) -> list[Event]:
    """All items are known: those that may not start are closed, the first of the others start."""
    if event.more or state.blocks is None:
        return []
    return _first(state, state.blocks.by_owner[event.owner])


def restored(state: Orchestration, owner: int) -> list[Event]:
    """The items are those of an earlier run: those that concluded there are closed; the others start after that."""
    assert state.blocks is not None
    return _first(state, state.blocks.by_owner[owner])


def _first(state: Orchestration, block: Block) -> list[Event]:
    events: list[Event] = []
    idle: set[int] = set()
    for some in block.idle:
        positions = [block.first + number for number in some.items]
        events.append(TicketsClosed(positions, *_not_started(some.why)))
        idle.update(positions)
    reused = [] if state.reuse is None else [p for p in block.positions if p in state.reuse.results]
    if reused:
        return [*events, TicketsReused(reused)]
    room = block.total if block.at_once is None else block.at_once
    first = [position for position in block.positions if position not in idle][:room]
    if first:
        events.append(policing.released(state, first))
    return events or [FanInClosed(block.gate, True)]


def _not_started(one: Resolution) -> tuple[Status, Reason]:
    if one.outcome is Outcome.SKIP:
        return Status.IGNORADA, because(ReasonCode.CONDITION_FALSE, expression=one.expression, detail=one.detail)
    return Status.ERRO, expression_fault(one)


def decided(state: Orchestration, block: Block, gate: Gate, count: GateCount) -> bool | None:
    """What the gate over the items of a map decides: without a failure it is met, whatever was skipped. Nothing more
    once the map is out of time."""
    if state.tickets[block.owner].phase is Phase.CLOSED:
        return None
    passed = fan_in.decide(gate.mode, gate.needed, len(gate.inputs), count)
    return True if passed is False and not count.failed and gate.mode in _SERVED_BY_NOTHING else passed


def following(
    state: Orchestration, closed: Iterable[int], closing: list[Event], *, reused: bool = False
) -> list[Event]:
    """The items that start because others have closed; none of a map whose fan-in is decided. `reused`: those that
    closed were taken over from an earlier run, and none of the others has started."""
    if state.blocks is None:
        return []
    over = {event.gate for event in closing if isinstance(event, FanInClosed)}
    touched = {id(block): block for position in closed if isinstance(block := state.blocks.of(position), Block)}
    events: list[Event] = []
    for block in touched.values():
        running = state.tickets[block.owner].phase is Phase.GROWN
        if running and block.gate not in over and state.gates[block.gate].passed is None:
            started = _waiting(state, block) if reused and block.at_once is None else _next(state, block)
            if started:
                events.append(policing.released(state, started))
    return events


def _waiting(state: Orchestration, block: Block) -> list[int]:
    return [position for position in block.positions if state.tickets[position].phase is Phase.WAITING]


def _next(state: Orchestration, block: Block) -> list[int]:
    end, position, started = block.first + block.total, block.next, list[int]()
    room = 0 if block.at_once is None else block.at_once - block.live
    while position < end and len(started) < room:
        if state.tickets[position].phase is Phase.WAITING:
            started.append(position)
        position += 1
    return started


# -- ending ------------------------------------------------------------------------------------------------------------


def concluded(state: Orchestration, block: Block, passed: bool) -> list[Event]:
    """The fan-in over the items of a map is decided, and with it the map, unless that was closed by the same step."""
    if state.tickets[block.owner].phase is Phase.CLOSED:
        return []
    count = state.gates[block.gate]
    if passed:
        return [MapEnded(block.owner, Status.PARCIAL if count.failed else Status.CONCLUIDA)]
    failed = because(ReasonCode.ITEMS_FAILED, failed=str(count.failed), total=str(block.total))
    return [MapEnded(block.owner, Status.ERRO, failed)]


def timed_out(state: Orchestration, owner: int) -> Event:
    """The whole of a map took longer than it may."""
    spec = map_at(state.plan, owner)
    limit = 0.0 if spec is None or spec.limit is None else spec.limit.total_seconds()
    return MapEnded(owner, Status.TIMEOUT, because(ReasonCode.NOT_IN_TIME, seconds=f"{limit:g}"))


def rest(state: Orchestration, ended: MapEnded) -> list[Event]:
    """Cancel the items that a map which has ended leaves open."""
    block = None if state.blocks is None else state.blocks.by_owner.get(ended.ticket)
    if block is None:
        return []
    why = ended.reason if ended.status is Status.TIMEOUT else None
    if why is None:
        code = ReasonCode.FAN_IN_UNREACHABLE if ended.status is Status.ERRO else ReasonCode.FAN_IN_MET
        why = because(code, mode=state.plan.gates[block.gate].mode.value)
    return _cancelled(state, block, why)


def left_behind(state: Orchestration, closed: Iterable[int], why: Reason) -> list[Event]:
    """A map or a loop that was closed from outside takes its items or its round with it."""
    if state.blocks is None:
        return []
    owned = [block for position in closed if (block := state.blocks.grown_of(position)) is not None]
    return [event for block in owned for event in _cancelled(state, block, why)]


def _cancelled(state: Orchestration, block: Block | Rounds, why: Reason) -> list[Event]:
    left = [position for position in block.positions if state.tickets[position].phase is not Phase.CLOSED]
    return [TicketsClosed(left, Status.CANCELADA, why)] if left else []
