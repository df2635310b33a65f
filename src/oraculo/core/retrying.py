"""What a retry of an ended run does again, and what it takes over (docs/adr/0043).

Taken over is what concluded, unless it was undone or made from something that runs again. A wait that concluded is
taken over in any case, because a signal that was taken or an approval that was given is not asked for twice; unless it
stands behind the one task that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from oraculo.core.blocks import Block
from oraculo.core.commands import Reuse
from oraculo.core.flow.profile import specs_in
from oraculo.core.reasons import ReasonCode
from oraculo.core.reuse import RetryFrom, ReusedResult, ReusedRows
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind, Status

CHUNK_RESULTS, CHUNK_BYTES = 2000, 512 * 1024
_LEFT_ALONE = (Status.CONCLUIDA, Status.IGNORADA)


@dataclass(frozen=True, slots=True)
class Reused:
    """What a retry takes over: positions of tasks, and of maps whose rows it gets."""

    tasks: list[int]
    maps: list[int]


def task_names(state: Orchestration) -> list[str]:
    """What the tasks of a run are called: their own names, or those of their destinations."""
    return list(dict.fromkeys(name for name, _ in _named(state)))


def positions_of(state: Orchestration, name: str) -> set[int]:
    """The tasks of this name; several where a request names a destination more than once."""
    return {position for known, position in _named(state) if known == name}


def _named(state: Orchestration) -> Iterator[tuple[str, int]]:
    profile, specs = state.plan.profile, specs_in(state.plan)
    for position in range(_planned(state)):
        if specs:
            yield specs[position].task_id, position
        else:
            yield profile.name_of(position) or state.plan.tasks[position].name, position


def unfinished(state: Orchestration) -> set[int]:
    """The tasks that did not conclude, or were undone; not those that were skipped or no longer needed."""
    return {position for position in range(_planned(state)) if _is_unfinished(state, position)}


def reused(state: Orchestration, mode: RetryFrom, tasks: Iterable[int] = ()) -> Reused:
    """What a retry takes over; `tasks` are those that are asked for anew."""
    if mode is RetryFrom.START:
        return Reused([], [])
    failed = unfinished(state)
    anew = _behind(state, tasks, through_waits=True) | set(tasks)
    changed = _behind(state, failed, through_waits=False) | anew
    kept = [position for position in range(_planned(state)) if position not in changed]
    blocks = {} if state.blocks is None else state.blocks.by_owner
    maps = [position for position in kept if position in blocks and blocks[position].complete]
    concluded = [
        position
        for position in kept
        if position not in failed
        and state.tickets[position].status is Status.CONCLUIDA
        and state.plan.tasks[position].kind is not Kind.MAPA
    ]
    return Reused(concluded, maps)


def commands(state: Orchestration, what: Reused) -> list[Reuse]:
    """What is taken over, copied, in chunks. Rows of a map come before what came of its items."""
    chunks = [Reuse(state.run, [], [], more=True)]
    size = count = 0
    for piece, weight in _pieces(state, what):
        if count and (count >= CHUNK_RESULTS or size + weight > CHUNK_BYTES):
            chunks.append(Reuse(state.run, [], [], more=True))
            size = count = 0
        if isinstance(piece, ReusedResult):
            chunks[-1].results.append(piece)
        else:
            chunks[-1].rows.append(piece)
        count += 1 if isinstance(piece, ReusedResult) else len(piece.rows)
        size += weight
    chunks[-1].more = False
    return chunks


def _pieces(state: Orchestration, what: Reused) -> Iterator[tuple[ReusedResult | ReusedRows, int]]:
    for position in what.tasks:
        yield _result(state, position, position, None)
    for position in what.maps:
        assert state.blocks is not None
        block = state.blocks.by_owner[position]
        yield from _rows(block)
        for number, item in enumerate(block.positions):
            undone = item in state.undone or position in state.undone
            if state.tickets[item].status is Status.CONCLUIDA and not undone:
                yield _result(state, item, position, number)


def _rows(block: Block) -> Iterator[tuple[ReusedRows, int]]:
    template = [piece.decode() for piece in block.pieces]
    some, size = ReusedRows(block.owner, block.total, [], template, block.idle), sum(map(len, block.pieces))
    for row in block.rows:
        weight = sum(map(len, row))
        if some.rows and (len(some.rows) == CHUNK_RESULTS or size + weight > CHUNK_BYTES):
            yield some, size
            some, size = ReusedRows(block.owner, block.total, []), 0
        some.rows.append(row)
        size += weight
    yield some, size


def _result(state: Orchestration, position: int, ticket: int, item: int | None) -> tuple[ReusedResult, int]:
    one = state.tickets[position]
    return ReusedResult(ticket, one.dados, one.erros or [], item), len(one.dados)


def _planned(state: Orchestration) -> int:
    """How many tasks the plan began with."""
    return state.asked if state.blocks is None else state.blocks.planned


def _is_unfinished(state: Orchestration, position: int) -> bool:
    ticket = state.tickets[position]
    if position in state.undone or any(item in state.undone for item in state.items(position)):
        return True
    spare = ticket.reason is not None and ticket.reason.code is ReasonCode.FAN_IN_MET
    return ticket.status not in _LEFT_ALONE and not spare


def _behind(state: Orchestration, positions: Iterable[int], *, through_waits: bool) -> set[int]:
    """The tasks that depend on these, directly or not; waits that concluded stop the search unless it goes through."""
    found: set[int] = set()
    stack = list(positions)
    while stack:
        for number in state.plan.tasks[stack.pop()].feeds:
            for position in state.plan.gates[number].releases:
                if position in found or (not through_waits and _is_over(state, position)):
                    continue
                found.add(position)
                stack.append(position)
    return found


def _is_over(state: Orchestration, position: int) -> bool:
    """True of a wait that has concluded."""
    is_wait = state.plan.profile.wait(position) is not None
    return is_wait and state.tickets[position].status is Status.CONCLUIDA
