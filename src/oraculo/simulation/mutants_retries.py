"""Mutants of retries: what they take over, and what they do again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from oraculo.core import restoring, retrying
from oraculo.core.commands import Reuse
from oraculo.core.events import MapRestored, PlanGrown
from oraculo.core.reasons import ReasonCode
from oraculo.core.reuse import RetryFrom
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.simulation.mutants import Mutant, patched

_RETRIES = ("retries-masked", "retries-unmasked")
_grown, _reused, _commands = restoring.grown, retrying.reused, retrying.commands


def runs_a_concluded_item() -> AbstractContextManager[None]:
    def grown(s: Orchestration, event: MapRestored) -> PlanGrown:
        found = _grown(s, event)
        assert s.reuse is not None
        s.reuse.results.pop(event.first, None)
        return found

    return patched((restoring, "grown", grown))


def runs_a_concluded_task() -> AbstractContextManager[None]:
    def reused(s: Orchestration, mode: RetryFrom, tasks: set[int]) -> retrying.Reused:
        found = _reused(s, mode, tasks)
        return replace(found, tasks=found.tasks[1:])

    return patched((retrying, "reused", reused))


def evaluates_a_map_again() -> AbstractContextManager[None]:
    def reused(s: Orchestration, mode: RetryFrom, tasks: set[int]) -> retrying.Reused:
        return replace(_reused(s, mode, tasks), maps=[])

    return patched((retrying, "reused", reused))


def takes_over_what_was_undone() -> AbstractContextManager[None]:
    def is_unfinished(s: Orchestration, position: int) -> bool:
        ticket = s.tickets[position]
        spare = ticket.reason is not None and ticket.reason.code is ReasonCode.FAN_IN_MET
        return ticket.status not in (Status.CONCLUIDA, Status.IGNORADA) and not spare

    return patched((retrying, "_is_unfinished", is_unfinished))


def gives_results_to_others() -> AbstractContextManager[None]:
    def commands(s: Orchestration, what: retrying.Reused) -> list[Reuse]:
        found = _commands(s, what)
        tasks = [one for chunk in found for one in chunk.results if one.item is None]
        for one, dados in zip(tasks, [one.dados for one in tasks][::-1], strict=True):
            one.dados = dados
        return found

    return patched((retrying, "commands", commands))


MUTANTS = [
    Mutant("a retry runs a concluded item", runs_a_concluded_item, _RETRIES, 200),
    Mutant("a retry runs a concluded task", runs_a_concluded_task, _RETRIES, 200),
    Mutant("a retry evaluates a map again", evaluates_a_map_again, _RETRIES, 200),
    Mutant("a retry takes over what was undone", takes_over_what_was_undone, _RETRIES, 200),
    Mutant("a retry gives results to other tasks", gives_results_to_others, _RETRIES, 200),
]
