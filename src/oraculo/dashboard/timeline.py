"""The journal in few bytes, for scripts: one short row an event, [number, milliseconds since the start, letter, …].

Positions of tickets stand as [first, how many, first, how many, …], so ten thousand in a row are two numbers. What
workers sent is not in it, only the beginning of their errors; `static/js/run-state.js` folds the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, assert_never

from oraculo.core import events as ev
from oraculo.core.ticket import COMPENSATION_TIMEOUT_MS
from oraculo.ports.store import Recorded

MOST_TEXT = 300


def ranges(positions: Iterable[int]) -> list[int]:
    found: list[int] = []
    for position in positions:
        if found and found[-2] + found[-1] == position:
            found[-1] += 1
        else:
            found += [position, 1]
    return found


def rows(recorded: Iterable[Recorded], start: datetime, after: int = 0) -> Iterator[list[Any]]:
    for step in recorded:
        at = round((step.at - start).total_seconds() * 1000)
        for number, event in enumerate(step.events, step.first):
            if number > after:
                yield [number, at, *_row(event, start)]


def _message(erros: list[dict[str, object]]) -> str:
    return "; ".join(str(erro.get("mensagem") or erro.get("codigo")) for erro in erros)[:MOST_TEXT]


def _row(event: ev.Event, start: datetime) -> list[Any]:
    match event:
        case ev.OrchestrationStarted():
            return ["s", len(event.plan.tasks)]
        case ev.TicketsDispatched(tickets, attempt):
            return ["d", ranges(tickets), attempt]
        case ev.DispatchConfirmed(tickets):
            return ["c", ranges(position for position, _ in tickets)]
        case ev.TicketConcluded(ticket, attempt):
            return ["k", ticket, attempt]
        case ev.AttemptFailed(ticket, attempt, cause, erros, retry_at):
            retry = round((retry_at - start).total_seconds() * 1000)
            return ["a", ticket, attempt, cause.value, retry, _message(erros)]
        case ev.TicketFailed(ticket, attempt, status, erros, _dados, definitivo):
            return ["f", ticket, attempt, status.value, _message(erros), int(definitivo)]
        case ev.LateAnswerKept(ticket, attempt, ok):
            return ["l", ticket, attempt, int(ok)]
        case ev.TicketsClosed(tickets, status, reason):
            return ["x", ranges(tickets), status.value, reason[:MOST_TEXT]]
        case ev.FanInClosed(gate, passed):
            return ["g", gate, int(passed)]
        case ev.Woken():
            return ["w"]
        case ev.CancelRequested(reason):
            return ["q", reason[:MOST_TEXT]]
        case ev.ApprovalAsked():
            return ["p", "asked", "", ""]
        case ev.ApprovalGiven(by, reason):
            return ["p", "given", by[:MOST_TEXT], reason[:MOST_TEXT]]
        case ev.ApprovalRefused(by, reason):
            return ["p", "refused", by[:MOST_TEXT], reason[:MOST_TEXT]]
        case ev.CompensationStarted(undone, reason):
            return ["u", undone, reason[:MOST_TEXT], COMPENSATION_TIMEOUT_MS]
        case ev.OrchestrationClosed(status):
            return ["e", status.value]
        case ev.NoticeSent(notice, attempt):
            return ["n", notice, attempt, "owed", ""]
        case ev.NoticeDelivered(notice, attempt, detail):
            return ["n", notice, attempt, "delivered", detail[:MOST_TEXT]]
        case ev.NoticeFailed(notice, attempt, detail):
            return ["n", notice, attempt, "backoff", detail[:MOST_TEXT]]
        case ev.NoticeGivenUp(notice, attempt, detail):
            return ["n", notice, attempt, "given_up", detail[:MOST_TEXT]]
        case _:
            assert_never(event)
