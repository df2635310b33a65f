"""The rules of notices, said again without the core: only of an end, one try after another, none after one that went
well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from oraculo.core import events as ev
from oraculo.simulation.facts import SeenNotice

RULE = "one notice per end"
Wrong = Callable[[str, str], None]


def read(event: ev.Event, at: datetime, notices: Sequence[SeenNotice], ended: bool, wrong: Wrong) -> timedelta:
    """Follow one event; how much later than it was due a try was made."""
    match event:
        case ev.NoticeSent(number, attempt):
            notice = notices[number]
            if not ended or attempt != notice.attempt + 1 or notice.phase in ("owed", "done"):
                wrong(RULE, f"notice {number} try {attempt} while {notice.phase}")
            notice.attempt, notice.phase = attempt, "owed"
            if notice.retry_at is not None:
                if at < notice.retry_at:
                    wrong("deadlines are honest", f"notice {number} tried before {notice.retry_at}")
                return at - notice.retry_at
        case ev.NoticeDelivered(number, attempt) | ev.NoticeGivenUp(number, attempt):
            _tried(notices[number], number, attempt, wrong).phase = "done"
        case ev.NoticeFailed(number, attempt, _detail, retry_at):
            notice = _tried(notices[number], number, attempt, wrong)
            notice.phase, notice.retry_at = "backoff", retry_at
    return timedelta()


def _tried(notice: SeenNotice, number: int, attempt: int, wrong: Wrong) -> SeenNotice:
    if notice.phase != "owed" or notice.attempt != attempt:
        wrong(RULE, f"notice {number} outcome of try {attempt} while {notice.phase}")
    return notice
