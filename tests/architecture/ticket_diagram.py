"""Draws how a ticket moves by trying every short history of a small plan on the real core.

`python tests/architecture/ticket_diagram.py` prints the diagram of docs/architecture.md; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta

from oraculo.core.commands import Cancel, Command, ConfirmDispatch, RecordResult, Start, Wake
from oraculo.core.plan import Backoff, NoticeTargets, Task, stages
from oraculo.core.state import Orchestration, evolve
from oraculo.core.step import step
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import FanIn, Kind, Phase

NOW = datetime(2025, 10, 14, 12, tzinfo=UTC)
DEPTH = 7
Moves = set[tuple[str, str, str]]


def _task(kind: Kind, name: str) -> Task:
    return Task(kind, name, f"q_{name}", b"{}", timedelta(seconds=10), 2)


def _commands(state: Orchestration) -> Iterator[tuple[Command, timedelta]]:
    owed = [(position, state.tickets[position].attempt) for position in sorted(state.owed)]
    if owed:
        yield ConfirmDispatch(owed), timedelta()
    for position, ticket in enumerate(state.tickets):
        if ticket.attempt:
            for ok in (True, False):
                yield RecordResult(ok, b"1", [], False, ticket_id(state.run, position), ticket.attempt), timedelta()
    yield Wake(), timedelta(seconds=11)
    yield Wake(), timedelta(hours=2)
    yield Cancel(), timedelta()


def moves() -> Moves:
    plan = stages(
        [_task(Kind.COLETA, "a"), _task(Kind.COLETA, "b")],
        [_task(Kind.EXECUCAO, "r")],
        mode=FanIn.PRIMEIRO,
        minimo=None,
        timeout=timedelta(hours=1),
        backoff=Backoff(),
        notify=NoticeTargets(),
    )
    found: Moves = set()
    first = step(None, Start(1 << 40, "d", plan), NOW).state
    _note(first.tickets[0].phase, "tickets_dispatched", Phase.OWED, found, start=True)
    frontier, seen = [(first, NOW)], {_shape(first)}
    for _ in range(DEPTH):
        following = []
        for state, now in frontier:
            for command, wait in _commands(state):
                before = deepcopy(state)
                at = now + wait
                done = step(deepcopy(state), command, at)
                for event in done.events:
                    phases = [ticket.phase for ticket in before.tickets]
                    evolve(before, event, at)
                    for old, ticket in zip(phases, before.tickets, strict=True):
                        if old is not ticket.phase:
                            _note(old, _snake(type(event).__name__), ticket.phase, found)
                if _shape(done.state) not in seen:
                    seen.add(_shape(done.state))
                    following.append((done.state, at))
        frontier = following
    return found


def _note(old: Phase, event: str, new: Phase, found: Moves, start: bool = False) -> None:
    found.add((Phase.WAITING.value if start else old.value, event, new.value))


def _shape(state: Orchestration) -> tuple[object, ...]:
    return (state.status, *((t.phase, t.attempt, t.status) for t in state.tickets))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]


def mermaid() -> str:
    lines = ["stateDiagram-v2", "    [*] --> waiting"]
    lines += [f"    {old} --> {new}: {event}" for old, event, new in sorted(moves())]
    return "\n".join([*lines, "    closed --> [*]"])


if __name__ == "__main__":
    print(mermaid())
