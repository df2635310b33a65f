"""What an answer, a silence or a confirmation does to one ticket: match, fence, retry, give up.

The rules, in the order they are asked:

1. *Which ticket?* core/matching.py.
2. *Which attempt?* By `tentativa`; without one, the current attempt. An attempt that was answered already makes the
   message a duplicate when it says the same again. When it says something else it conflicts: kept and shown, without
   effect; a ticket holds a few of those, and what comes then is refused, which keeps it too. An attempt that is over
   (it timed out, was cancelled) makes it late: kept and shown, without effect. One that was withdrawn counts when it
   went well (core/withdrawing.py). An attempt that was never made is refused.
3. *And then?* Success closes the ticket. A failure is tried again while attempts are left, unless it is `definitivo`.
   The wait has full jitter, hashed from ticket and attempt, so that the same journal gives the same waits.
"""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta

from oraculo.core import policing
from oraculo.core.commands import RecordResult
from oraculo.core.digests import content_of
from oraculo.core.events import (
    AttemptFailed,
    ChildEnded,
    ConflictingAnswerKept,
    Event,
    LateAnswerKept,
    TicketConcluded,
    TicketFailed,
)
from oraculo.core.matching import match
from oraculo.core.pausing import clock
from oraculo.core.plan import Backoff
from oraculo.core.reasons import Reason, ReasonCode, because
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Cause, Kind, Status, Verdict
from oraculo.core.withdrawing import counts_after_all

CONFLICTS_MAX = 8  # answers that disagree, kept with one ticket; never fewer, or older journals do not replay


def record(state: Orchestration, answer: RecordResult, now: datetime) -> tuple[Event | None, Verdict]:
    position = match(state, answer)
    if isinstance(position, Verdict):
        return None, position
    ticket = state.tickets[position]
    attempt = answer.attempt
    if attempt is None:
        attempt = ticket.attempt
        if ticket.digest and ticket.digest == answer.digest:
            return None, Verdict.DUPLICATE
    if attempt < 1 or attempt > ticket.attempt:
        return None, Verdict.WRONG_ATTEMPT
    if ticket.answered >> attempt & 1:
        return _again(state, position, attempt, answer)
    wanted = state.wants_answer(position, attempt) or (answer.ok and counts_after_all(state, position, attempt))
    if not wanted:
        if state.plan.tasks[position].kind is Kind.FILHA:
            return None, Verdict.IDLE  # its parent has ended it, and hears that it has ended
        late = LateAnswerKept(
            position, attempt, answer.ok, answer.dados, answer.erros, answer.definitivo, answer.digest, answer.actor
        )
        return late, Verdict.LATE
    if answer.ok and answer.child is not None:
        return ChildEnded(position, attempt, answer.child, answer.dados, answer.digest), Verdict.APPLIED
    if answer.ok and policing.holds_answer(state, position):
        return policing.held(position, attempt, answer), Verdict.APPLIED
    if answer.ok:
        said = (answer.dados, answer.erros, answer.digest, answer.actor, answer.work_ms)
        return TicketConcluded(position, attempt, *said), Verdict.APPLIED
    about = (answer.dados, answer.definitivo, answer.digest, answer.actor, answer.work_ms)
    return failed(state, position, Cause.ERRO, answer.erros, now, *about), Verdict.APPLIED


def _again(state: Orchestration, position: int, attempt: int, answer: RecordResult) -> tuple[Event | None, Verdict]:
    """An attempt that was answered already is answered again: the same, or something else."""
    ticket, said = state.tickets[position], content_of(answer.digest)
    known = {content_of(digest) for digest in ticket.digests(attempt)}
    if answer.attempt is None and ticket.earlier is not None:  # it may belong to any of them
        known.update(map(content_of, ticket.earlier.values()))
    if state.plan.rules < 4 or not said or said in known or known == {0}:
        return None, Verdict.DUPLICATE
    if len(ticket.conflicts or ()) >= CONFLICTS_MAX:
        return None, Verdict.TOO_MANY_ANSWERS
    conflicting = ConflictingAnswerKept(
        position, attempt, answer.ok, answer.dados, answer.erros, answer.definitivo, answer.digest, answer.actor
    )
    return conflicting, Verdict.CONFLICTING


def failed(
    state: Orchestration,
    position: int,
    cause: Cause,
    erros: list[dict[str, object]],
    now: datetime,
    dados: bytes = b"null",
    definitivo: bool = False,
    digest: int = 0,
    actor: str | None = None,
    work_ms: int | None = None,
) -> Event:
    """The running attempt failed: another one, or the end of the ticket."""
    ticket, task = state.tickets[position], state.plan.tasks[position]
    fault: Reason | None = None
    if cause is Cause.TIMEOUT:
        seconds = f"{task.timeout.total_seconds():g}"
        fault = because(ReasonCode.NO_ANSWER, queue=task.queue, seconds=seconds, attempt=str(ticket.attempt))
        if task.kind is Kind.FILHA:
            fault = because(ReasonCode.NOT_IN_TIME, seconds=seconds)
    elif not erros:
        fault = because(ReasonCode.NO_DETAIL)
    profile = state.plan.profile
    final = definitivo or profile.is_final(position, [erro.get("codigo") for erro in erros])
    whole = cause is Cause.TIMEOUT and task.kind is Kind.FILHA  # there is no further attempt
    if final or whole or ticket.used >= task.max_attempts:
        status = Status.TIMEOUT if cause is Cause.TIMEOUT else Status.ERRO
        return TicketFailed(position, ticket.attempt, status, erros, dados, definitivo, digest, fault, actor, work_ms)
    backoff = profile.backoff(position) or state.plan.backoff
    retry_at = clock(state, now) + jittered(backoff, f"{state.run}:{position}", ticket.attempt)
    return AttemptFailed(position, ticket.attempt, cause, erros, retry_at, dados, digest, fault, actor, work_ms)


def timed_out(state: Orchestration, position: int, now: datetime) -> Event:
    """No answer to the running attempt came before its deadline."""
    return failed(state, position, Cause.TIMEOUT, [], now)


def jittered(backoff: Backoff, who: str, attempt: int) -> timedelta:
    """Full jitter: a share of the whole wait that is hashed, not drawn."""
    whole = min(backoff.cap, _grown(backoff, attempt - 1))
    share: float = (zlib.crc32(f"{who}:{attempt}".encode()) + 1) / 2**32
    return whole * share


def _grown(backoff: Backoff, times: int) -> timedelta:
    """The first wait, grown so many times; the longest wait where it would be longer than can be said."""
    try:
        return backoff.base * backoff.factor**times
    except OverflowError:
        return backoff.cap
