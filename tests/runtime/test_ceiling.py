"""How many tickets of Fluxo C are with workers at once, and who goes first."""

from __future__ import annotations

from core.given import T0
from core.test_flow import made, node
from oraculo.core.commands import ConfirmDispatch, RecordResult, Start
from oraculo.core.events import TicketsDispatched
from oraculo.core.state import Orchestration, evolve
from oraculo.core.step import step
from oraculo.core.ticket_id import ticket_id
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling

RUN = 77


def running(width: int) -> Orchestration:
    plan = made(*(node(f"t{n}") for n in range(width)))
    state = step(None, Start(RUN, "abc123", plan), T0).state
    step(state, ConfirmDispatch([(p, 1) for p in range(width)]), T0)
    return state


def everything(_what: str) -> bool:
    return True


def test_the_most_urgent_go_first_and_no_more_than_may() -> None:
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(2)
    for position, (name, score) in enumerate([("low", 0.3), ("high", 0.9), ("mid", 0.5), ("high too", 0.9)]):
        ceiling.add((RUN, position, 1), lambda score=score: score, name)
    assert ceiling.due(everything) == ["high", "high too"]
    assert ceiling.due(everything) == []
    assert (len(ceiling), ceiling.out) == (2, 2)


def test_what_ended_makes_room() -> None:
    state = running(3)
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(2)
    for position in range(3):
        ceiling.add((RUN, position, 1), lambda: 0.5, f"t{position}")
    assert ceiling.due(everything) == ["t0", "t1"]
    ceiling.settle(state)
    assert ceiling.due(everything) == []
    step(state, RecordResult(True, b"1", [], ticket=ticket_id(RUN, 1), attempt=1, digest=1), T0)
    ceiling.settle(state)
    assert ceiling.due(everything) == ["t2"]
    assert ceiling.runs == [RUN]


def test_what_nobody_wants_takes_no_room() -> None:
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(1)
    ceiling.add((RUN, 0, 1), lambda: 0.9, "closed meanwhile")
    ceiling.add((RUN, 1, 1), lambda: 0.5, "wanted")
    assert ceiling.due(lambda what: what == "wanted") == ["wanted"]
    assert ceiling.out == 1


def test_what_a_pause_recalled_goes_on_in_its_own_place() -> None:
    """It may have been sent before the pause; if all places were held by such orders, none could ever go."""
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(1)
    assert not ceiling.add((RUN, 0, 1), lambda: 0.5, "before the pause")
    assert ceiling.due(everything) == ["before the pause"]
    ceiling.add((RUN, 1, 1), lambda: 0.9, "next")
    assert ceiling.add((RUN, 0, 1), lambda: 0.5, "after the pause")
    assert (len(ceiling), ceiling.holds(RUN, 0)) == (2, True)
    assert ceiling.due(everything) == ["after the pause"]
    assert (len(ceiling), ceiling.holds(RUN, 0), ceiling.out) == (1, False, 1)


def test_what_was_never_sent_takes_no_place() -> None:
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(1)
    ceiling.add((RUN, 0, 1), lambda: 0.5, "before the pause")
    ceiling.due(everything)
    ceiling.take_back((RUN, 0, 1))
    ceiling.take_back((RUN, 5, 1))
    ceiling.add((RUN, 1, 1), lambda: 0.9, "next")
    assert not ceiling.add((RUN, 0, 1), lambda: 0.5, "after the pause")
    assert ceiling.due(everything) == ["next"]


def test_what_nobody_wants_does_not_wait() -> None:
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(0)
    for position, name in enumerate(("closed meanwhile", "wanted")):
        ceiling.add((RUN, position, 1), lambda: 0.5, name)
    ceiling.rescore(lambda what: what == "wanted")
    assert (len(ceiling), ceiling.holds(RUN, 0), ceiling.holds(RUN, 1)) == (1, False, True)


def test_an_attempt_is_over_when_the_next_one_is_owed_in_the_same_step() -> None:
    state = running(1)
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(1)
    ceiling.with_workers(state)
    evolve(state, TicketsDispatched([0], 2), T0)
    ceiling.add((RUN, 0, 2), lambda: 0.5, "again")
    ceiling.settle(state)
    assert ceiling.due(everything) == ["again"]
    assert ceiling.out == 1


def test_who_waits_becomes_more_urgent() -> None:
    scores = {"old": 0.3, "new": 0.5}
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(0)
    for position, name in enumerate(scores):
        ceiling.add((RUN, position, 1), lambda name=name: scores[name], name)
    scores["old"] = 1.0
    ceiling.rescore(everything)
    ceiling.limit = 1
    assert ceiling.due(everything) == ["old"]


def test_after_a_restart_what_is_with_workers_counts() -> None:
    ceiling: ConcurrencyCeiling[str] = ConcurrencyCeiling(3)
    ceiling.with_workers(running(2))
    ceiling.with_workers(running(2))  # twice does no harm
    assert ceiling.out == 2
    for position in (5, 6):
        ceiling.add((RUN + 1, position, 1), lambda: 0.5, f"t{position}")
    assert ceiling.due(everything) == ["t5"]
