"""How a notice is tried again: the schedule of Standard Webhooks, then given up in sight of everyone.

A plan of Fluxo C has three quick tries more before that, as those who wait for its webhooks know them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from oraculo.core.commands import RecordDelivery
from oraculo.core.events import Event, NoticeDelivered, NoticeFailed, NoticeGivenUp
from oraculo.core.plan import Backoff, Plan
from oraculo.core.results import jittered
from oraculo.core.state import NoticePhase, Orchestration
from oraculo.core.vocabulary import Verdict

# Waits after try 1, 2, 3, …; after the last one the notice is given up.
SCHEDULE = tuple(timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400))
QUICK = tuple(timedelta(seconds=2 * 2**retry) for retry in range(3))
_SINCE = 2  # the version of the rules that has QUICK


def schedule(plan: Plan) -> tuple[timedelta, ...]:
    return QUICK + SCHEDULE if plan.flow is not None and plan.rules >= _SINCE else SCHEDULE


def delivered(state: Orchestration, report: RecordDelivery, now: datetime) -> tuple[Event | None, Verdict]:
    if not 0 <= report.notice < len(state.notices):
        return None, Verdict.IDLE
    notice = state.notices[report.notice]
    if notice.phase is not NoticePhase.OWED or notice.attempt != report.attempt:
        return None, Verdict.IDLE
    if report.delivered:
        return NoticeDelivered(report.notice, report.attempt, report.detail), Verdict.APPLIED
    waits = schedule(state.plan)
    if report.final or report.attempt > len(waits):
        return NoticeGivenUp(report.notice, report.attempt, report.detail, report.final, report.retry_after), (
            Verdict.APPLIED
        )
    wait = waits[report.attempt - 1]
    spread = jittered(Backoff(wait / 10, wait / 10), f"{state.run}:n{report.notice}", report.attempt)
    retry_at = now + max(wait + spread, report.retry_after or timedelta())
    return NoticeFailed(report.notice, report.attempt, report.detail, retry_at, report.retry_after), Verdict.APPLIED
