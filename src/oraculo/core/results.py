"""What an answer, a silence or a confirmation does to one ticket: match, fence, retry, give up.

The rules, in the order they are asked:

1. *Which ticket?* By `ticket_id`; without one, by the only open ticket of that source or executor; without a name, by
   the only open ticket of that kind. Two candidates: `ambiguous`, for a human; never a guess. A ticket that undoes
   another is found by its `ticket_id` alone: what comes without one may be a late answer of what is undone.
2. *Which attempt?* By `tentativa`; without one, the current attempt. An attempt that was answered already makes the
   message a duplicate. An attempt that is over (it timed out, was cancelled) makes it late: kept and shown, without
   effect. An attempt that was never made is refused.
3. *And then?* Success closes the ticket. A failure is tried again while attempts are left, unless it is `definitivo`.
   The wait has full jitter, hashed from ticket and attempt, so that the same journal gives the same waits.
"""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta

from oraculo.core.commands import RecordResult
from oraculo.core.events import AttemptFailed, Event, LateAnswerKept, TicketConcluded, TicketFailed
from oraculo.core.plan import Backoff
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Cause, Kind, Phase, Status, Verdict


def match(state: Orchestration, answer: RecordResult) -> int | Verdict:
    """The position of the ticket that an answer belongs to, or why it cannot be told."""
    if answer.ticket is not None:
        parsed = parse_ticket_id(answer.ticket)
        if parsed is None or parsed[0] != state.run or parsed[1] >= len(state.tickets):
            return Verdict.UNKNOWN_TICKET
        return parsed[1]
    kind = answer.kind or Kind.COLETA
    if answer.name is not None and state.named(kind, answer.name):
        candidates = state.open_named(kind, answer.name)
        if not candidates:
            return _closed_named(state, kind, answer.name)
    else:  # no name, or one that nobody asked for: the only open ticket of that kind, if there is but one
        candidates = _open_of_kind(state, kind)
        if not candidates:
            return _closed_of_kind(state, kind)
    started = [position for position in candidates if state.tickets[position].attempt]
    if len(started) == 1:
        return started[0]
    return Verdict.AMBIGUOUS if started else Verdict.UNKNOWN_TICKET


def _open_of_kind(state: Orchestration, kind: Kind) -> list[int]:
    return [
        position
        for position, task in enumerate(state.plan.tasks[: state.asked])
        if task.kind is kind and state.tickets[position].phase is not Phase.CLOSED
    ]


def _closed_named(state: Orchestration, kind: Kind, name: str) -> int | Verdict:
    """No open ticket of that name: the only closed one gets it, as a late answer or a duplicate."""
    closed = state.named(kind, name)
    if len(closed) == 1:
        return closed[0]
    return Verdict.AMBIGUOUS if closed else Verdict.UNKNOWN_TICKET


def _closed_of_kind(state: Orchestration, kind: Kind) -> int | Verdict:
    closed = [position for position, task in enumerate(state.plan.tasks[: state.asked]) if task.kind is kind]
    if len(closed) == 1:
        return closed[0]
    return Verdict.AMBIGUOUS if closed else Verdict.UNKNOWN_TICKET


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
        return None, Verdict.DUPLICATE
    live = ticket.phase is Phase.RUNNING or ticket.phase is Phase.OWED
    if attempt != ticket.attempt or not live:
        late = LateAnswerKept(
            position, attempt, answer.ok, answer.dados, answer.erros, answer.definitivo, answer.digest
        )
        return late, Verdict.LATE
    if answer.ok:
        return TicketConcluded(position, attempt, answer.dados, answer.erros, answer.digest), Verdict.APPLIED
    return failed(
        state, position, Cause.ERRO, answer.erros, now, answer.dados, answer.definitivo, answer.digest
    ), Verdict.APPLIED


def failed(
    state: Orchestration,
    position: int,
    cause: Cause,
    erros: list[dict[str, object]],
    now: datetime,
    dados: bytes = b"null",
    definitivo: bool = False,
    digest: int = 0,
) -> Event:
    """The running attempt failed: another one, or the end of the ticket."""
    ticket, task = state.tickets[position], state.plan.tasks[position]
    if definitivo or ticket.attempt >= task.max_attempts:
        status = Status.TIMEOUT if cause is Cause.TIMEOUT else Status.ERRO
        return TicketFailed(position, ticket.attempt, status, erros, dados, definitivo, digest)
    retry_at = now + jittered(state.plan.backoff, f"{state.run}:{position}", ticket.attempt)
    return AttemptFailed(position, ticket.attempt, cause, erros, retry_at, dados, digest)


def timed_out(state: Orchestration, position: int, now: datetime) -> Event:
    """Nobody answered the running attempt before its deadline."""
    task, attempt = state.plan.tasks[position], state.tickets[position].attempt
    erro: dict[str, object] = {
        "codigo": "timeout",
        "mensagem": f"sem resposta de {task.queue} em {task.timeout.total_seconds():g} s (tentativa {attempt})",
        "definitivo": False,
    }
    return failed(state, position, Cause.TIMEOUT, [erro], now)


def jittered(backoff: Backoff, who: str, attempt: int) -> timedelta:
    """Full jitter: a share of the whole wait that is hashed, not drawn."""
    whole = min(backoff.cap, backoff.base * (1 << min(attempt - 1, 32)))
    share: float = (zlib.crc32(f"{who}:{attempt}".encode()) + 1) / 2**32
    return whole * share
