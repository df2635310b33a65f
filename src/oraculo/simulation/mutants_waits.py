"""Mutants of the rules for waits: signals, decisions, expiry, deadlines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from oraculo.core import endings, waiting
from oraculo.core import events as ev
from oraculo.core.commands import Signal
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase, Status
from oraculo.core.waits import Wait, WaitEnd, signal_task
from oraculo.simulation.mutants import Mutant, patched
from oraculo.wire import named_plans

_WAITS = ("waits-masked", "waits-unmasked")
_signalled, _begun, _taken, _approved = waiting.signalled, waiting.begun, waiting.taken, waiting.approved
_out_of_time, _due_at = waiting.out_of_time, Wait.due_at


def signal_wakes_two_waits() -> AbstractContextManager[None]:
    def started(s: Orchestration, positions: list[int], now: datetime) -> list[ev.Event]:
        _held.append(s)
        return _started(s, positions, now)

    def taken(event: ev.SignalReceived) -> list[ev.Event]:
        others = [p for p in _held[-1].held.get(signal_task(event.name), ()) if p != event.taken_by] if _held else []
        more = [ev.WaitEnded(p, WaitEnd.SIGNALLED, Status.CONCLUIDA) for p in others[:1]]
        return [*_taken(event), *more] if event.taken_by is not None else []

    _held: list[Orchestration] = []
    _started = waiting.started
    return patched((waiting, "started", started), (waiting, "taken", taken))


def early_signal_is_dropped() -> AbstractContextManager[None]:
    def begun(s: Orchestration, event: ev.WaitStarted, now: datetime) -> list[ev.Event]:
        kept, s.kept = s.kept, {}
        try:
            return _begun(s, event, now)
        finally:
            s.kept = kept

    return patched((waiting, "begun", begun))


def key_is_ignored() -> AbstractContextManager[None]:
    def signalled(s: Orchestration, command: Signal) -> Any:
        again = f"{command.id}~{len(s.signals)}"
        return _signalled(s, replace(command, id=again) if command.id in s.signals else command)

    return patched((waiting, "signalled", signalled))


def newest_wait_is_served_first() -> AbstractContextManager[None]:
    def signalled(s: Orchestration, command: Signal) -> Any:
        events, verdict = _signalled(s, command)
        for event in events:
            held = list(s.held.get(signal_task(command.name), ()))
            if isinstance(event, ev.SignalReceived) and held:
                event.taken_by = held[-1]
        return events, verdict

    return patched((waiting, "signalled", signalled))


def expiry_wins_after_the_signal() -> AbstractContextManager[None]:
    """The signal is recorded as taken, and the wait ends as if nothing had come."""

    def taken(event: ev.SignalReceived) -> list[ev.Event]:
        if event.taken_by is None:
            return []
        return [ev.WaitEnded(event.taken_by, WaitEnd.EXPIRED, Status.CONCLUIDA)]

    return patched((waiting, "taken", taken))


def wait_ends_before_its_instant() -> AbstractContextManager[None]:
    def due_at(self: Wait, value: bytes, now: datetime) -> datetime | None:
        due = _due_at(self, value, now)
        return None if due is None else now + (due - now) / 2

    return patched((Wait, "due_at", due_at))


def wait_outlives_its_instant() -> AbstractContextManager[None]:
    def begun(s: Orchestration, event: ev.WaitStarted, now: datetime) -> list[ev.Event]:
        if s.tickets[event.ticket].phase is Phase.HELD and event.due_at is not None and event.due_at <= now:
            s.tickets[event.ticket].due_at = None
            return []
        return _begun(s, event, now)

    return patched((waiting, "begun", begun))


def refusal_concludes() -> AbstractContextManager[None]:
    def approved(s: Orchestration, event: Any, task: int, now: datetime) -> list[ev.Event]:
        ended = _approved(s, event, task, now)
        for one in ended:
            if isinstance(one, ev.WaitEnded):
                one.status, one.reason = Status.CONCLUIDA, None
        return ended

    return patched((waiting, "approved", approved))


def expired_wait_always_fails() -> AbstractContextManager[None]:
    def out_of_time(s: Orchestration, position: int) -> ev.WaitEnded:
        ended = _out_of_time(s, position)
        return replace(ended, status=Status.TIMEOUT) if ended.how is WaitEnd.EXPIRED else ended

    return patched((waiting, "out_of_time", out_of_time))


def refusal_is_an_error() -> AbstractContextManager[None]:
    return patched((endings, "behind_refusals", lambda _s: set()))


def deadline_for_a_plan_that_waits() -> AbstractContextManager[None]:
    return patched((named_plans, "_timeout", lambda _document, _defaults: timedelta(hours=1)))


MUTANTS = [
    Mutant("a signal wakes two waits", signal_wakes_two_waits, _WAITS, 300),
    Mutant("an early signal is dropped", early_signal_is_dropped, _WAITS, 100),
    Mutant("the key of a signal is ignored", key_is_ignored, _WAITS, 100),
    Mutant("the newest wait is served first", newest_wait_is_served_first, _WAITS, 300),
    Mutant("expiry wins after the signal", expiry_wins_after_the_signal, _WAITS, 100),
    Mutant("a wait ends before its instant", wait_ends_before_its_instant, _WAITS, 100),
    Mutant("a wait outlives its instant", wait_outlives_its_instant, _WAITS, 200),
    Mutant("a refusal concludes", refusal_concludes, _WAITS, 200),
    Mutant("a wait that expires always fails", expired_wait_always_fails, _WAITS, 200),
    Mutant("a refusal is an error", refusal_is_an_error, _WAITS, 300),
    Mutant("a deadline for a plan that waits", deadline_for_a_plan_that_waits, _WAITS, 50),
]
