"""Decisions about the attempts of one ticket: who got it, how it went, why it was tried again or taken back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from oraculo.core import events as ev
from oraculo.core import sentences
from oraculo.core.allocation_words import method_said, reason_said
from oraculo.core.allocations import AllocatedAttempt, Allocation
from oraculo.core.flow.profile import specs_in
from oraculo.core.vocabulary import Cause
from oraculo.wire import allocation_views
from oraculo.wire.why import words
from oraculo.wire.why.telling import DecisionTold, Telling, instant, length, milliseconds


def allocated(telling: Telling, event: ev.TicketAllocated, at: datetime) -> DecisionTold:
    """Who got an attempt, out of whom, why the others did not, and what was predicted then."""
    one, language = event.allocation, telling.language
    told = telling.say(
        "allocated",
        names=telling.name(event.ticket),
        n=event.attempt,
        worker=one.agent_id,
        score=one.agent_score,
        urgency=one.priority_score,
        how=method_said(one.method, language),
    )
    details = [
        telling.say(
            "allocated.other", worker=other.agent_id, score=other.score, why=reason_said(other.reason, language)
        )
        for other in one.candidates[1:]
        if other.reason is not None
    ]
    if one.evaluated > len(one.candidates):
        counts = ", ".join(f"{reason_said(why, language)} {n}" for why, n in one.refused.items())
        details.append(telling.say("allocated.more", counts=counts))
    details += _predicted(telling, one)
    document = allocation_views.of_ticket(AllocatedAttempt(event.attempt, at, one))
    return DecisionTold(told, details, event.ticket, event.attempt, {"alocacao": document})


def _predicted(telling: Telling, one: Allocation) -> list[str]:
    if one.predicted_ms is None or one.predicted_p90_ms is None:
        return []
    return [telling.say("predicted", half=length(one.predicted_ms), most=length(one.predicted_p90_ms))]


def concluded(telling: Telling, event: ev.TicketConcluded, at: datetime) -> DecisionTold:
    """That an answer counted, and what came of what was predicted."""
    told = telling.say("concluded", names=telling.name(event.ticket), n=event.attempt, by=telling.by(event.actor))
    details, documents = came(telling, event.ticket, event.attempt, at)
    return DecisionTold(told, details, event.ticket, event.attempt, documents)


def came(telling: Telling, position: int, attempt: int, at: datetime) -> tuple[list[str], dict[str, Any]]:
    """How long an attempt took that ended at this instant, beside what was predicted or estimated of it."""
    ticket = telling.state.tickets[position]
    if ticket.started_at is None or ticket.attempt != attempt:
        return [], {}
    took = milliseconds(at - ticket.started_at)
    given = ticket.allocated
    if given is None or given.attempt != attempt or given.allocation.predicted_p90_ms is None:
        specs = specs_in(telling.state.plan)
        estimated = specs[position].estimated_ms if position < len(specs) else 0
        details = [telling.say("estimated", ms=length(estimated))] if estimated else []
        return [*details, telling.say("took", took=length(took))], {}
    half, most = given.allocation.predicted_ms, given.allocation.predicted_p90_ms
    inside = took <= most
    verdict = telling.say("came.inside" if inside else "came.outside")
    details = [*_predicted(telling, given.allocation), telling.say("came", took=length(took), verdict=verdict)]
    return details, {
        "previsao": {"previsto_ms": half, "previsto_p90_ms": most, "levou_ms": took, "dentro_do_p90": inside}
    }


def failed(telling: Telling, event: ev.AttemptFailed) -> DecisionTold:
    """Why an attempt failed, and when the next one follows."""
    told = telling.say(
        "failed",
        names=telling.name(event.ticket),
        n=event.attempt,
        cause=words.cause(telling.language, event.cause),
        by=telling.by(event.actor),
        error=_error(telling, event),
    )
    task, ticket = telling.state.plan.tasks[event.ticket], telling.state.tickets[event.ticket]
    before = ticket.withdrawn & ((1 << event.attempt) - 1)
    used = event.attempt - before.bit_count()
    again = telling.say("failed.again", until=instant(event.retry_at), used=used, most=task.max_attempts)
    return DecisionTold(told, [again], event.ticket, event.attempt)


def gave_up(telling: Telling, event: ev.TicketFailed, at: datetime) -> DecisionTold:
    """Why a ticket failed for good."""
    told = telling.say(
        "gave-up",
        names=telling.name(event.ticket),
        n=event.attempt,
        by=telling.by(event.actor),
        error=_error(telling, event),
    )
    details, documents = came(telling, event.ticket, event.attempt, at)
    if event.reason is None and event.definitivo:
        details = [telling.say("gave-up.final"), *details]
    elif not event.definitivo:
        most = telling.state.plan.tasks[event.ticket].max_attempts
        details = [telling.say("gave-up.spent", most=most), *details]
    return DecisionTold(told, details, event.ticket, event.attempt, documents)


def _error(telling: Telling, event: ev.AttemptFailed | ev.TicketFailed) -> str:
    return sentences.message(sentences.errors_said(event, telling.language)) or _known(telling, event)


def _known(telling: Telling, event: ev.AttemptFailed | ev.TicketFailed) -> str:
    """What is said of a failure of which nothing else is known."""
    if isinstance(event, ev.AttemptFailed):
        return words.cause(telling.language, event.cause)
    return telling.status(event.status)


def withdrawn(telling: Telling, event: ev.TicketWithdrawn) -> DecisionTold:
    """Why an attempt was taken back from its worker, and when the next one goes out."""
    known = event.cause if event.cause in (Cause.PREEMPTADO, Cause.OFERTA_VENCIDA) else Cause.REALOCADO
    told = telling.say(
        f"withdrawn.{known}",
        names=telling.name(event.ticket),
        n=event.attempt,
        worker=event.worker or "?",
        by=telling.by(event.actor),
        ticket=event.by,
    )
    when = telling.say("withdrawn.at-once")
    if event.wait is not None:
        when = telling.say("withdrawn.after", seconds=f"{event.wait.total_seconds():g}")
    return DecisionTold(told, [telling.say("withdrawn.kept", when=when)], event.ticket, event.attempt)


def requeued(telling: Telling, event: ev.TicketRequeued) -> DecisionTold:
    told = telling.say("requeued", names=telling.name(event.ticket), n=event.attempt, by=telling.by(event.actor))
    return DecisionTold(told, [], event.ticket, event.attempt)


def without_effect(telling: Telling, event: ev.LateAnswerKept | ev.ConflictingAnswerKept) -> DecisionTold:
    """An answer that was kept and changed nothing."""
    word = "late" if isinstance(event, ev.LateAnswerKept) else "conflicting"
    told = telling.say(word, names=telling.name(event.ticket), n=event.attempt)
    said = sentences.message(sentences.errors_said(event, telling.language))
    return DecisionTold(told, [said] if said else [], event.ticket, event.attempt)


def held(telling: Telling, event: ev.AnswerHeld) -> DecisionTold:
    return DecisionTold(telling.say("held", names=telling.name(event.ticket)), [], event.ticket, event.attempt)
