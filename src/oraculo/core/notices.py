"""How a notice is tried again: the schedule that its plan recorded, then given up in sight of everyone."""

from __future__ import annotations

from datetime import datetime, timedelta

from oraculo.core.commands import RecordDelivery
from oraculo.core.events import Event, NoticeDelivered, NoticeFailed, NoticeGivenUp
from oraculo.core.plan import Backoff
from oraculo.core.results import jittered
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Verdict


def delivered(state: Orchestration, report: RecordDelivery, now: datetime) -> tuple[Event | None, Verdict]:
    if not 0 <= report.notice < len(state.notices) or not state.owes_notice(report.notice, report.attempt):
        return None, Verdict.IDLE
    if report.delivered:
        return NoticeDelivered(report.notice, report.attempt, report.detail), Verdict.APPLIED
    waits = state.plan.notify.waits
    if report.final or report.attempt > len(waits):
        return NoticeGivenUp(report.notice, report.attempt, report.detail, report.final, report.retry_after), (
            Verdict.APPLIED
        )
    wait = waits[report.attempt - 1]
    spread = jittered(Backoff(wait / 10, wait / 10), f"{state.run}:n{report.notice}", report.attempt)
    retry_at = now + max(wait + spread, report.retry_after or timedelta())
    return NoticeFailed(report.notice, report.attempt, report.detail, retry_at, report.retry_after), Verdict.APPLIED
