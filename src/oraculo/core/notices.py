"""How a notice is tried again: the schedule of Standard Webhooks, then given up in sight of everyone."""

from __future__ import annotations

from datetime import datetime, timedelta

from oraculo.core.commands import RecordDelivery
from oraculo.core.events import Event, NoticeDelivered, NoticeFailed, NoticeGivenUp
from oraculo.core.plan import Backoff
from oraculo.core.results import jittered
from oraculo.core.state import NoticePhase, Orchestration
from oraculo.core.vocabulary import Verdict

# Waits after try 1, 2, 3, …; after the last one the notice is given up.
SCHEDULE = tuple(timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400))


def delivered(state: Orchestration, report: RecordDelivery, now: datetime) -> tuple[Event | None, Verdict]:
    if not 0 <= report.notice < len(state.notices):
        return None, Verdict.IDLE
    notice = state.notices[report.notice]
    if notice.phase is not NoticePhase.OWED or notice.attempt != report.attempt:
        return None, Verdict.IDLE
    if report.delivered:
        return NoticeDelivered(report.notice, report.attempt, report.detail), Verdict.APPLIED
    if report.final or report.attempt > len(SCHEDULE):
        return NoticeGivenUp(report.notice, report.attempt, report.detail, report.final, report.retry_after), (
            Verdict.APPLIED
        )
    wait = SCHEDULE[report.attempt - 1]
    spread = jittered(Backoff(wait / 10, wait / 10), f"{state.run}:n{report.notice}", report.attempt)
    retry_at = now + max(wait + spread, report.retry_after or timedelta())
    return NoticeFailed(report.notice, report.attempt, report.detail, retry_at, report.retry_after), Verdict.APPLIED
