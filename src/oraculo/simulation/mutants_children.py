"""Mutants of the rules for children."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from typing import Any

from oraculo.core import children, decide, effects, results, state
from oraculo.core import events as ev
from oraculo.core import step as stepping
from oraculo.core.commands import ConfirmCancel, RecordResult
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Kind, Status, Verdict
from oraculo.simulation import core_world
from oraculo.simulation.mutants import Mutant, patched

_CHILDREN = ("children-masked", "children-unmasked")
_close, _record, _orders, _failed = state._close, results.record, effects.orders, results.failed
_child_id, _evolve = children.child_id, state.evolve


def a_child_is_not_cancelled() -> AbstractContextManager[None]:
    def close(s: Orchestration, position: int, status: Status, at: Any) -> None:
        _close(s, position, status, at)
        if status in (Status.CANCELADA, Status.TIMEOUT):
            s.to_end.pop(position, None)

    return patched((state, "_close", close))


def a_child_that_was_not_begun_is_forgotten() -> AbstractContextManager[None]:
    def close(s: Orchestration, position: int, status: Status, at: Any) -> None:
        begun = s.tickets[position].confirmed >> s.tickets[position].attempt & 1
        _close(s, position, status, at)
        if not begun and status in (Status.CANCELADA, Status.TIMEOUT):
            s.to_end.pop(position, None)

    return patched((state, "_close", close))


def a_child_begins_under_two_ids() -> AbstractContextManager[None]:
    numbers = count()

    def child_id(s: Orchestration, position: int, attempt: int) -> str:
        return f"{_child_id(s, position, attempt)}.{next(numbers)}"

    def orders(s: Orchestration, tickets: Any) -> Any:
        found = _orders(s, tickets)
        return [*found, *(one for one in found if isinstance(one, effects.Begin))]

    return patched(
        (children, "child_id", child_id),
        (core_world, "child_id", child_id),
        (effects, "orders", orders),
        (stepping, "orders", orders),
    )


def a_later_attempt_has_the_same_id() -> AbstractContextManager[None]:
    def child_id(s: Orchestration, position: int, _attempt: int) -> str:
        return _child_id(s, position, 1)

    return patched((children, "child_id", child_id), (core_world, "child_id", child_id))


def items_share_an_id() -> AbstractContextManager[None]:
    def child_id(s: Orchestration, position: int, attempt: int) -> str:
        kept, s.blocks = s.blocks, None
        try:
            return _child_id(s, position, attempt)
        finally:
            s.blocks = kept

    return patched((children, "child_id", child_id), (core_world, "child_id", child_id))


def a_child_is_a_message() -> AbstractContextManager[None]:
    def orders(s: Orchestration, tickets: Any) -> Any:
        return [effects.Publish(tickets)] if tickets else []

    return patched((effects, "orders", orders), (stepping, "orders", orders))


def a_partial_child_is_whole() -> AbstractContextManager[None]:
    def evolve(s: Orchestration, event: ev.Event, at: Any) -> None:
        if isinstance(event, ev.ChildEnded) and event.status is Status.PARCIAL:
            event = replace(event, status=Status.CONCLUIDA)
        _evolve(s, event, at)

    return patched((state, "evolve", evolve), (stepping, "evolve", evolve))


def a_child_that_timed_out_is_tried_again() -> AbstractContextManager[None]:
    def failed(s: Orchestration, position: int, *more: Any, **named: Any) -> ev.Event:
        tasks, s.plan = s.plan, replace(s.plan, tasks=[replace(one, kind=Kind.COLETA) for one in s.plan.tasks])
        try:
            return _failed(s, position, *more, **named)
        finally:
            s.plan = tasks

    return patched((results, "failed", failed))


def a_cancel_counts_for_another_attempt() -> AbstractContextManager[None]:
    right = decide.decide

    def wrong(s: Orchestration, command: Any, now: Any) -> Any:
        if isinstance(command, ConfirmCancel):
            return [ev.ChildrenCancelled(list(command.children))], Verdict.APPLIED
        return right(s, command, now)

    def evolve(s: Orchestration, event: ev.Event, at: Any) -> None:
        if isinstance(event, ev.ChildrenCancelled):
            event = ev.ChildrenCancelled([one for one in event.tickets if one[0] in s.to_end])
        _evolve(s, event, at)

    return patched((stepping, "decide", wrong), (state, "evolve", evolve), (stepping, "evolve", evolve))


def an_answer_of_a_child_counts_late() -> AbstractContextManager[None]:
    def record(s: Orchestration, answer: RecordResult, now: Any) -> Any:
        return _record(s, replace(answer, child=None), now)

    return patched((results, "record", record))


MUTANTS = [
    Mutant("a child is not cancelled", a_child_is_not_cancelled, _CHILDREN, 200),
    Mutant("a child that was not begun is forgotten", a_child_that_was_not_begun_is_forgotten, _CHILDREN, 400),
    Mutant("a child begins under two ids", a_child_begins_under_two_ids, _CHILDREN, 100),
    Mutant("a later attempt has the id of the first", a_later_attempt_has_the_same_id, _CHILDREN, 400),
    Mutant("children of a map share an id", items_share_an_id, _CHILDREN, 200),
    Mutant("a child is sent as a message", a_child_is_a_message, _CHILDREN, 100),
    Mutant("a partial child counts as whole", a_partial_child_is_whole, _CHILDREN, 200),
    Mutant("a child out of time is tried again", a_child_that_timed_out_is_tried_again, _CHILDREN, 800),
    Mutant("a cancel of another child counts", a_cancel_counts_for_another_attempt, _CHILDREN, 200),
    Mutant("a child ends like a worker's task", an_answer_of_a_child_counts_late, _CHILDREN, 200),
]
