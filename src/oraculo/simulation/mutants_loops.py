"""Mistakes in the rules of loops."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from oraculo.core import blocks, loops, maps
from oraculo.core import events as ev
from oraculo.core.named_tasks import LoopSpec
from oraculo.core.resolution import Outcome, Resolution
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.runtime.evaluator import Evaluator
from oraculo.simulation.mutants import Mutant, patched

_LOOPS = ("loops-masked", "loops-unmasked")
_following, _stopped, _end_loop = loops.following, loops.stopped, blocks.end_loop
_condition, _begin_round = Evaluator.condition, blocks._begin_round
_take_in, _left_behind = blocks.take_in, maps.left_behind


def one_round_too_many() -> AbstractContextManager[None]:
    return patched((LoopSpec, "has_room", lambda spec, rounds: rounds <= spec.at_most))


def one_round_too_few() -> AbstractContextManager[None]:
    return patched((LoopSpec, "has_room", lambda spec, rounds: rounds < spec.at_most - 1 or not rounds))


def a_round_starts_though_the_condition_is_true() -> AbstractContextManager[None]:
    def condition(self: Evaluator, said: Any, word: str = "quando") -> bool:
        return _condition(self, said, word) and not word.startswith("repete")

    return patched((Evaluator, "condition", condition))


def a_spent_loop_concludes() -> AbstractContextManager[None]:
    def stopped(s: Orchestration, one: Resolution) -> ev.LoopEnded:
        return _stopped(s, replace(one, outcome=Outcome.STOP))

    return patched((loops, "stopped", stopped))


def a_failed_round_is_followed() -> AbstractContextManager[None]:
    def following(s: Orchestration, closed: Any) -> list[ev.Event]:
        found = _following(s, closed)
        return [ev.TasksAsked([one.ticket]) if isinstance(one, ev.LoopEnded) else one for one in found]

    return patched((loops, "following", following))


def the_pause_is_skipped() -> AbstractContextManager[None]:
    def begun(_state: Orchestration, event: ev.PlanGrown) -> list[ev.Event]:
        return [ev.TicketsDispatched([event.first], 1)]

    return patched((loops, "begun", begun))


def a_round_outlives_its_loop() -> AbstractContextManager[None]:
    return patched((loops, "rest", lambda s, ended: []))


def a_loop_is_never_out_of_time() -> AbstractContextManager[None]:
    def take_in(s: Orchestration, event: ev.PlanGrown, at: Any) -> None:
        _take_in(s, event, at)
        if event.owner in (s.blocks.loops if s.blocks is not None else ()):
            s.tickets[event.owner].due_at = None

    return patched((blocks, "take_in", take_in))


def a_loop_gives_its_first_result() -> AbstractContextManager[None]:
    def end_loop(s: Orchestration, owner: int, status: Status) -> None:
        kept = s.tickets[owner].dados
        _end_loop(s, owner, status)
        if status is Status.CONCLUIDA and kept != b"null":
            s.tickets[owner].dados = kept

    return patched((blocks, "end_loop", end_loop))


def earlier_rounds_keep_their_data() -> AbstractContextManager[None]:
    def begin_round(s: Orchestration, rounds: blocks.Rounds, *more: Any) -> None:
        kept = [(one, s.tickets[one].dados) for one in rounds.positions[-2:-1]]
        _begin_round(s, rounds, *more)
        for position, dados in kept:
            s.tickets[position].dados = dados

    return patched((blocks, "_begin_round", begin_round))


def a_loop_asks_twice() -> AbstractContextManager[None]:
    def following(s: Orchestration, closed: Any) -> list[ev.Event]:
        found = _following(s, closed)
        return [*found, *(one for one in found if isinstance(one, ev.TasksAsked))]

    return patched((loops, "following", following))


def a_loop_stops_asking() -> AbstractContextManager[None]:
    def following(s: Orchestration, closed: Any) -> list[ev.Event]:
        return [one for one in _following(s, closed) if not isinstance(one, ev.TasksAsked)]

    return patched((loops, "following", following))


def rounds_outlive_a_loop_that_is_closed() -> AbstractContextManager[None]:
    def left_behind(s: Orchestration, closed: Any, why: Any) -> list[ev.Event]:
        found = _left_behind(s, closed, why)
        kept = [] if s.blocks is None else [p for one in s.blocks.loops.values() for p in one.positions]
        return [one for one in found if not isinstance(one, ev.TicketsClosed) or one.tickets[0] not in kept]

    return patched((maps, "left_behind", left_behind))


MUTANTS = [
    Mutant("a loop makes one round too many", one_round_too_many, _LOOPS, 200),
    Mutant("a loop makes one round too few", one_round_too_few, _LOOPS, 200),
    Mutant("a round starts though the condition is true", a_round_starts_though_the_condition_is_true, _LOOPS, 200),
    Mutant("a spent loop concludes", a_spent_loop_concludes, _LOOPS, 200),
    Mutant("a failed round is followed", a_failed_round_is_followed, _LOOPS, 200),
    Mutant("the pause between rounds is skipped", the_pause_is_skipped, _LOOPS, 200),
    Mutant("a round outlives its loop", a_round_outlives_its_loop, _LOOPS, 600),
    Mutant("a loop is never out of time", a_loop_is_never_out_of_time, _LOOPS, 600),
    Mutant("a loop gives an earlier result", a_loop_gives_its_first_result, _LOOPS, 400),
    Mutant("earlier rounds keep their data", earlier_rounds_keep_their_data, _LOOPS, 200),
    Mutant("a loop asks twice", a_loop_asks_twice, _LOOPS, 200),
    Mutant("a loop stops asking", a_loop_stops_asking, _LOOPS, 200),
    Mutant("rounds outlive a loop that is spare", rounds_outlive_a_loop_that_is_closed, _LOOPS, 800),
]
