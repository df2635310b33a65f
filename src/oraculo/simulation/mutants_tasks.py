"""Mutants of the rules for plans with named tasks: skipped tasks, absorbed failures, shared inputs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

from oraculo.core import advance, decide, endings, fan_in, state
from oraculo.core import events as ev
from oraculo.core.commands import Resolve
from oraculo.core.fan_in import GateCount, Policy
from oraculo.core.named_tasks import NamedTasks
from oraculo.core.resolution import Outcome
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Ending, FanIn, Phase, Status, Verdict
from oraculo.simulation.mutants import Mutant, patched

_TASKS = ("tasks-masked", "tasks-unmasked")
_close, _resolved, _by_absorption = state._close, advance._resolved, endings._by_absorption


def _with_close(count: Any) -> AbstractContextManager[None]:
    """`count` gets the gates of a ticket that was skipped, after they were counted."""

    def close(s: Orchestration, position: int, status: Status, at: datetime) -> None:
        _close(s, position, status, at)
        if status is Status.IGNORADA or (status is not Status.CONCLUIDA and s.plan.profile.optional(position)):
            for number in s.plan.tasks[position].feeds:
                count(s.gates[number])

    return patched((state, "_close", close))


def skipped_counts_as_failed() -> AbstractContextManager[None]:
    def failed(gate: GateCount) -> None:
        gate.skipped -= 1

    return _with_close(failed)


def skipped_counts_as_success() -> AbstractContextManager[None]:
    def good(gate: GateCount) -> None:
        gate.skipped -= 1
        gate.ok += 1

    return _with_close(good)


def one_skipped_input_skips_the_join() -> AbstractContextManager[None]:
    def decide(_needed: int, inputs: int, count: GateCount) -> bool | None:
        if count.failed or count.skipped:
            return False
        return None if count.closed < inputs else True

    strict = Policy(lambda inputs: inputs, decide, in_requests=False)
    return patched((fan_in, "POLICIES", {**fan_in.POLICIES, FanIn.TODAS_OK: strict}))


def join_of_skipped_tasks_runs() -> AbstractContextManager[None]:
    def decide(_needed: int, inputs: int, count: GateCount) -> bool | None:
        return None if count.closed < inputs else True

    lax = Policy(lambda _inputs: 0, decide, in_requests=False)
    return patched((fan_in, "POLICIES", {**fan_in.POLICIES, FanIn.FECHADAS: lax}))


def spare_although_another_gate_needs_it() -> AbstractContextManager[None]:
    def met(s: Orchestration, position: int) -> FanIn | None:
        passed = [n for n in s.plan.tasks[position].feeds if s.gates[n].passed]
        return s.plan.gates[passed[0]].mode if passed else None

    return patched((advance, "_met_without", met))


def every_failure_is_absorbed() -> AbstractContextManager[None]:
    return patched((endings, "_is_absorbed", lambda _s, _position: True))


def no_failure_is_absorbed() -> AbstractContextManager[None]:
    return patched((endings, "_is_absorbed", lambda _s, _position: False))


def final_codes_are_tried_again() -> AbstractContextManager[None]:
    return patched((NamedTasks, "is_final", lambda _self, _position, _codes: False))


def waits_of_its_own_are_ignored() -> AbstractContextManager[None]:
    return patched((NamedTasks, "backoff", lambda _self, _position: None))


def starts_without_being_asked() -> AbstractContextManager[None]:
    return patched((NamedTasks, "asks", lambda _self, _position: False))


def resolved_twice() -> AbstractContextManager[None]:
    """What was resolved counts again as long as the task is open."""

    def resolve(s: Orchestration, command: Resolve) -> Any:
        wanted = [one for one in command.resolutions if s.tickets[one.ticket].phase is not Phase.CLOSED]
        output = command.output if s.asks_output else None
        return ([ev.Resolved(wanted, output)], Verdict.APPLIED) if wanted or output else ([], Verdict.IDLE)

    return patched((decide, "_resolve", resolve))


def false_condition_runs() -> AbstractContextManager[None]:
    def resolved(s: Orchestration, event: ev.Resolved, now: datetime) -> list[ev.Event]:
        runs = [replace(one, outcome=Outcome.GO) for one in event.resolutions]
        return _resolved(s, ev.Resolved(runs, event.output), now)

    return patched((advance, "_resolved", resolved))


def ends_without_its_output() -> AbstractContextManager[None]:
    return patched((NamedTasks, "has_output", property(lambda _self: False)))


def failed_output_is_a_good_end() -> AbstractContextManager[None]:
    return patched((endings, "_ENDINGS", {**endings._ENDINGS, Ending.ABSORBED: _without_output_fault}))


def _without_output_fault(s: Orchestration) -> Status:
    fault, s.output_fault = s.output_fault, None
    try:
        return _by_absorption(s)
    finally:
        s.output_fault = fault


MUTANTS = [
    Mutant("a task starts without being asked", starts_without_being_asked, _TASKS, 100),
    Mutant("an evaluation counts twice", resolved_twice, _TASKS, 200),
    Mutant("a task with a false condition runs", false_condition_runs, _TASKS, 200),
    Mutant("a plan ends without its output", ends_without_its_output, _TASKS, 100),
    Mutant("a failed output is a good end", failed_output_is_a_good_end, _TASKS, 200),
    Mutant("a skipped task counts as failed", skipped_counts_as_failed, _TASKS, 200),
    Mutant("a skipped task counts as concluded", skipped_counts_as_success, _TASKS, 200),
    Mutant("one skipped input skips the join", one_skipped_input_skips_the_join, _TASKS, 200),
    Mutant("a join of skipped tasks runs", join_of_skipped_tasks_runs, _TASKS, 800),
    Mutant("cancelled as spare while another gate needs it", spare_although_another_gate_needs_it, _TASKS, 200),
    Mutant("every failure is absorbed", every_failure_is_absorbed, _TASKS, 100),
    Mutant("no failure is absorbed", no_failure_is_absorbed, _TASKS, 100),
    Mutant("a code that is final is tried again", final_codes_are_tried_again, _TASKS, 200),
    Mutant("the waits of a task are ignored", waits_of_its_own_are_ignored, _TASKS, 400),
]
