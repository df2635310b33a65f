"""When a schedule starts an orchestration: which of its instants fire now, which are skipped or missed, what is next.

A schedule has nominal instants, given by a calendar. Each is dealt with once, in order: `after` is the last one that
was. The decision is written down before anything is done (`firing`), so that whichever process finds it does the same;
the run of an instant is named after it, so doing it twice starts one run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b

FIRED_AT_ONCE = 100  # instants of one schedule
WAITING_MAX = 100  # instants that wait for the run before them
WAITING_POLL = timedelta(seconds=1)  # how often it is looked whether that run has ended
TAKEOVER = timedelta(seconds=10)  # after which another process does what was decided and not done

NextInstant = Callable[[datetime], datetime | None]  # the first nominal instant after this one; None: there is none


class Overlap(StrEnum):
    """What happens at an instant while the run of an earlier one is still open."""

    PULAR = "pular"
    ENFILEIRAR = "enfileirar"
    CANCELAR_ANTERIOR = "cancelar_anterior"
    PERMITIR = "permitir"


@dataclass(frozen=True, slots=True)
class ScheduleRule:
    """`catch_up` is how late an instant may still fire; `jitter` is the longest that one is put off."""

    name: str
    overlap: Overlap
    catch_up: timedelta
    jitter: timedelta = timedelta()
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """`after`: every instant up to it was dealt with. `firing`: what was decided and may not be done yet; the run of
    the instant `cancel` is cancelled before. `last`: the newest that fired. `waiting`: in line behind its run."""

    after: datetime
    last: datetime | None = None
    firing: tuple[datetime, ...] = ()
    cancel: datetime | None = None
    waiting: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleDecision:
    """`missed` is the first of the instants that are too late to fire."""

    state: ScheduleState
    skipped: tuple[datetime, ...] = ()
    missed: datetime | None = None


def run_name(name: str, instant: datetime) -> str:
    """The correlation_id of the run of an instant."""
    utc = instant.astimezone(UTC)
    return f"{name}@{utc.replace(tzinfo=None).isoformat()}Z"


def fire_at(rule: ScheduleRule, instant: datetime) -> datetime:
    """When an instant fires: itself, put off by a part of `jitter` that its name decides."""
    if not rule.jitter:
        return instant
    digest = blake2b(run_name(rule.name, instant).encode(), digest_size=8).digest()
    return instant + rule.jitter * (int.from_bytes(digest) / 2**64)


def needs_previous(rule: ScheduleRule, state: ScheduleState) -> bool:
    """Whether the decision depends on the run before being open."""
    return rule.overlap is not Overlap.PERMITIR and state.last is not None


def decide(
    rule: ScheduleRule, state: ScheduleState, following: NextInstant, now: datetime, previous_open: bool
) -> ScheduleDecision:
    """What becomes of the instants that are due. The state says what is to be done; `next_due` when to look again."""
    state, missed = _forget_late(rule, state, following, now)
    due = _due(rule, state.after, following, now)
    match rule.overlap:
        case Overlap.PERMITIR:
            return _fire(state, due, due, missed=missed)
        case Overlap.ENFILEIRAR:
            waiting = (*state.waiting, *due)
            state = replace(state, waiting=waiting[:WAITING_MAX])
            skipped = waiting[WAITING_MAX:]
            if previous_open or not state.waiting:
                return _fire(state, due, (), skipped, missed)
            first, *rest = state.waiting
            return _fire(replace(state, waiting=tuple(rest)), due, (first,), skipped, missed)
        case Overlap.PULAR if previous_open:
            return _fire(state, due, (), due, missed)
        case Overlap.PULAR:
            return _fire(state, due[:1], due[:1], missed=missed)  # the others are looked at while its run is open
        case Overlap.CANCELAR_ANTERIOR:
            decided = _fire(state, due, due[-1:], due[:-1], missed)
            if not due or not previous_open:
                return decided
            return replace(decided, state=replace(decided.state, cancel=state.last))


def _fire(
    state: ScheduleState,
    dealt_with: tuple[datetime, ...],
    firing: tuple[datetime, ...],
    skipped: tuple[datetime, ...] = (),
    missed: datetime | None = None,
) -> ScheduleDecision:
    after = dealt_with[-1] if dealt_with else state.after
    last = firing[-1] if firing else state.last
    return ScheduleDecision(replace(state, after=after, last=last, firing=firing, cancel=None), skipped, missed)


def _forget_late(
    rule: ScheduleRule, state: ScheduleState, following: NextInstant, now: datetime
) -> tuple[ScheduleState, datetime | None]:
    """Pass over the instants that are too late to fire, however many they are."""
    edge = now - rule.catch_up - rule.jitter
    if state.after >= edge:
        return state, None
    first = following(state.after)
    if first is None or first >= edge or _is_over(rule, first):
        return state, None
    return replace(state, after=edge - timedelta(microseconds=1)), first


def _due(rule: ScheduleRule, after: datetime, following: NextInstant, now: datetime) -> tuple[datetime, ...]:
    found: list[datetime] = []
    while len(found) < FIRED_AT_ONCE:
        instant = following(after)
        if instant is None or _is_over(rule, instant) or fire_at(rule, instant) > now:
            break
        found.append(instant)
        after = instant
    return tuple(found)


def _is_over(rule: ScheduleRule, instant: datetime) -> bool:
    return rule.end is not None and instant > rule.end


def next_due(rule: ScheduleRule, state: ScheduleState, following: NextInstant, now: datetime) -> datetime | None:
    """When a schedule has to be looked at again; None: never, by itself."""
    if state.firing:
        return now + TAKEOVER
    instant = following(state.after)
    ordinary = None if instant is None or _is_over(rule, instant) else fire_at(rule, instant)
    if state.waiting:
        poll = now + WAITING_POLL
        return poll if ordinary is None else min(poll, ordinary)
    return ordinary


def done(state: ScheduleState) -> ScheduleState:
    """The state once what was decided is done."""
    return replace(state, firing=(), cancel=None)
