"""Tickets that a plan gets while it runs: the items of maps and the rounds of loops, in blocks.

A block holds the parameters of its items cut at their holes, once, and one row of values for each item; a message is
spliced from the two. Items of one block share their task and what the profile says of them, and stand in one range of
positions, so a block is found by bisection, and growing costs what is added, however much there is already. Rounds come
one at a time, and nothing is kept of those that are over but how they ended, unless each of them may have to be undone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from oraculo.core import fan_in, pausing
from oraculo.core.fan_in import GateCount
from oraculo.core.named_tasks import GrownTasks, LoopSpec, MapSpec, named_in
from oraculo.core.plan import Gate, Plan, Task
from oraculo.core.resolution import IdleItems
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Phase, Status

if TYPE_CHECKING:
    from oraculo.core.events import PlanGrown
    from oraculo.core.state import Orchestration

Row = tuple[bytes, ...]  # the value of each hole, as JSON text


@dataclass(slots=True)
class Block:
    """The items of one map: `total` positions from `first` on. `pieces` is what stands around the holes. `next` is
    the first position that has not started, `live` how many have started and are not closed."""

    owner: int
    first: int
    total: int
    gate: int
    at_once: int | None
    pieces: tuple[bytes, ...]
    rows: list[Row]
    next: int
    live: int = 0
    count: int = 0  # how many are there already
    idle: list[IdleItems] = field(default_factory=list)  # that do not start

    @property
    def positions(self) -> range:
        return range(self.first, self.first + self.count)

    @property
    def complete(self) -> bool:
        return self.count == self.total

    def number(self, position: int) -> int:
        """Which item it is, from 0."""
        return position - self.first

    def item(self, position: int) -> bytes:
        """The item itself, where its row keeps it."""
        return self.rows[position - self.first][len(self.pieces) - 1]

    def parameters(self, position: int) -> bytes:
        """The parameters of one item."""
        return _spliced(self.pieces, self.rows[position - self.first])


@dataclass(slots=True)
class Rounds:
    """The rounds of one loop, in their order. `row` is that of the last one."""

    owner: int
    pieces: tuple[bytes, ...]
    positions: list[int] = field(default_factory=list)
    row: Row = ()

    def number(self, position: int) -> int:
        """Which round it is, from 0."""
        return bisect_right(self.positions, position) - 1

    def parameters(self, position: int) -> bytes:
        """The parameters of the last round; null of one that is over."""
        return _spliced(self.pieces, self.row) if position == self.positions[-1] else b"null"


def _spliced(pieces: tuple[bytes, ...], row: Row) -> bytes:
    parts = [pieces[0]]
    for value, piece in zip(row, pieces[1:], strict=False):  # an item may stand behind
        parts += (value, piece)
    return b"".join(parts)


@dataclass(slots=True)
class Blocks:
    """All blocks of an orchestration, in the order of their positions; the first begins behind the plan itself. Rounds
    are there once for each of their positions."""

    planned: int  # how many tickets the plan began with
    all: list[Block | Rounds] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    by_owner: dict[int, Block] = field(default_factory=dict)
    by_gate: dict[int, Block] = field(default_factory=dict)
    loops: dict[int, Rounds] = field(default_factory=dict)  # by the position of the loop

    def of(self, position: int) -> Block | Rounds | None:
        """The block that a position belongs to; None for a task of the plan itself, and for one that undoes another."""
        if position < self.planned:
            return None
        at = bisect_right(self.firsts, position) - 1
        block = self.all[at]
        end = block.first + block.total if isinstance(block, Block) else self.firsts[at] + 1
        return block if position < end else None

    def add(self, block: Block) -> None:
        self.all.append(block)
        self.firsts.append(block.first)
        self.by_owner[block.owner] = self.by_gate[block.gate] = block

    def add_round(self, rounds: Rounds, position: int) -> None:
        self.all.append(rounds)
        self.firsts.append(position)
        rounds.positions.append(position)

    def grown_of(self, owner: int) -> Block | Rounds | None:
        """What a map or a loop has got; None before there is anything."""
        return self.by_owner.get(owner) or self.loops.get(owner)

    def started(self, positions: Iterable[int]) -> None:
        for position in positions:
            block = self.of(position)
            if isinstance(block, Block):
                block.live += 1
                block.next = max(block.next, position + 1)

    def reopened(self, position: int) -> None:
        """An item gets another attempt: it takes its place in the window, even if another one has it now."""
        block = self.of(position)
        if isinstance(block, Block):
            block.live += 1

    def closed(self, position: int) -> None:
        """An item that had started has closed."""
        block = self.of(position)
        if isinstance(block, Block):
            block.live -= 1

    def is_past(self, position: int) -> bool:
        """True of a round that two others came behind."""
        block = self.of(position)
        return isinstance(block, Rounds) and position not in block.positions[-2:]


def body_at(plan: Plan, position: int) -> MapSpec | LoopSpec | None:
    """What the map or the loop at this position does again and again; None when neither is there."""
    return map_at(plan, position) or loop_at(plan, position)


def loop_at(plan: Plan, position: int) -> LoopSpec | None:
    """What the loop at this position does; None when no loop is there."""
    named = named_in(plan)
    return named.named[position].loop if named is not None and position < len(named.named) else None


def map_at(plan: Plan, position: int) -> MapSpec | None:
    """What the map at this position does; None when no map is there."""
    named = named_in(plan)
    return named.named[position].map if named is not None and position < len(named.named) else None


def with_room(plan: Plan) -> Plan:
    """The plan with room for more tasks, apart from the one that its request made. Once for a plan."""
    if isinstance(plan.profile, GrownTasks):
        return plan
    named = named_in(plan)
    assert named is not None, "plans without names do not grow like this"
    return replace(plan, tasks=list(plan.tasks), gates=list(plan.gates), profile=GrownTasks.of(named))


def add_rows(plan: Plan, blocks: Blocks, event: PlanGrown) -> Task:
    """Put the rows of a chunk into the plan and into their block, which the first chunk makes; the task of an item."""
    profile, tasks, gates = plan.profile, plan.tasks, plan.gates
    assert isinstance(profile, GrownTasks) and isinstance(tasks, list) and isinstance(gates, list)
    loop = profile.named[event.owner].loop
    if loop is not None:
        return _add_round(loop, profile, tasks, blocks, event)
    spec = profile.named[event.owner].map
    assert spec is not None, "only maps and loops grow"
    block = blocks.by_owner.get(event.owner)
    if block is None:
        inputs = range(event.first, event.first + event.total)
        needed = fan_in.POLICIES[spec.join.mode].needed(event.total) if spec.join.minimo is None else spec.join.minimo
        pieces = tuple(piece.encode() for piece in event.template or ())
        block = Block(event.owner, event.first, event.total, len(gates), spec.at_once, pieces, [], event.first)
        gates.append(Gate(spec.join.mode, needed, inputs, (), essential=False))
        blocks.add(block)
    task = tasks[block.first] if block.count else replace(spec.task, parametros=b"{}", after=None, feeds=(block.gate,))
    tasks.extend([task] * event.count)
    profile.items.extend([spec.item] * event.count)
    block.rows.extend(event.rows)
    block.idle.extend(event.idle)
    block.count += event.count
    return task


def _add_round(spec: LoopSpec, profile: GrownTasks, tasks: list[Task], blocks: Blocks, event: PlanGrown) -> Task:
    rounds = blocks.loops.get(event.owner)
    if rounds is None:
        rounds = blocks.loops[event.owner] = Rounds(
            event.owner, tuple(piece.encode() for piece in event.template or ())
        )
        task = replace(spec.task, parametros=b"{}", after=None, feeds=())
    else:
        task = tasks[rounds.positions[-1]]
    tasks.append(task)
    profile.items.append(spec.item)
    blocks.add_round(rounds, event.first)
    rounds.row = event.rows[0] if event.rows else ()
    return task


def take_in(state: Orchestration, event: PlanGrown, at: datetime) -> None:
    """Make the chunk true: its items are tickets, and the map is under way; or so is a loop and its next round."""
    owner = state.tickets[event.owner]
    state.plan = with_room(state.plan)
    if state.blocks is None:
        state.blocks = Blocks(len(state.tickets))
    if owner.phase is Phase.WAITING:
        owner.phase, owner.status, owner.attempt = Phase.GROWN, Status.EM_EXECUCAO, 1
        owner.dispatched_at = owner.started_at = at
        state.status = Status.EM_EXECUCAO
        spec = body_at(state.plan, event.owner)
        if spec is not None and spec.limit is not None:
            owner.due_at = due = pausing.clock(state, at) + spec.limit
            state.arm(event.owner, due)
    task = add_rows(state.plan, state.blocks, event)
    state.gates += [GateCount() for _ in range(len(state.plan.gates) - len(state.gates))]
    if state.by_name is not None:
        positions = range(event.first, event.first + event.count)
        state.by_name.setdefault((task.kind, task.name), []).extend(positions)
    state.tickets += [Ticket() for _ in range(event.count)]
    state.open += event.count
    state.asks.pop(event.owner, None)
    rounds = state.blocks.loops.get(event.owner)
    if rounds is None:
        state.data_bytes += sum(len(value) for row in event.rows for value in row)
    else:
        _begin_round(state, rounds, task, event.due_at)


def _begin_round(state: Orchestration, rounds: Rounds, task: Task, due_at: datetime | None) -> None:
    """The round before is over: its data are those of the loop by now. At most two rounds can be found by name: the one
    that is open, and another, so that an answer without a ticket stays as unclear as it is."""
    *past, position = rounds.positions[-3:]
    if past:
        before, owner = state.tickets[past[-1]], state.tickets[rounds.owner]
        loop = loop_at(state.plan, rounds.owner)
        if loop is None or loop.item.undo is None:  # what undoes a round sees what it gave
            state.data_bytes -= 0 if owner.dados == b"null" else len(owner.dados)
            owner.dados, before.dados = before.dados, b"null"
        else:
            owner.dados = before.dados
    if len(past) == 2 and state.by_name is not None:
        found = state.by_name[task.kind, task.name]
        number = bisect_right(found, past[0]) - 1
        if number >= 0 and found[number] == past[0]:
            del found[number]
    if due_at is not None:
        ticket = state.tickets[position]
        ticket.phase, ticket.due_at = Phase.BACKOFF, due_at
        state.arm(position, due_at)


def end_loop(state: Orchestration, owner: int, status: Status) -> None:
    """Give a loop that ends what its last round gave; nothing when it failed."""
    rounds = None if state.blocks is None else state.blocks.loops.get(owner)
    good = status in (Status.CONCLUIDA, Status.PARCIAL)
    state.tickets[owner].dados = state.tickets[rounds.positions[-1]].dados if good and rounds is not None else b"null"
