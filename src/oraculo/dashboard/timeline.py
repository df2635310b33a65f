"""The journal in few bytes, for scripts: one short row an event, [number, milliseconds since the start, letter, …].

Positions of tickets stand as [first, how many, first, how many, …], so ten thousand in a row are two numbers. What
workers sent is not in it, only the beginning of their errors. Who caused an event stands behind all else, as an object;
`static/js/run-state.js` folds the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, assert_never

from oraculo.core import events as ev
from oraculo.core.blocks import body_at, loop_at
from oraculo.core.plan import Plan
from oraculo.core.policies import text_of
from oraculo.core.reasons import Reason
from oraculo.core.sentences import DEFAULT_LANGUAGE, Language, errors_said, message, say
from oraculo.core.waits import WaitKind
from oraculo.ports.journal import Recorded

TEXT_MAX_CHARACTERS = 300


def ranges(positions: Iterable[int]) -> list[int]:
    found: list[int] = []
    for position in positions:
        if found and found[-2] + found[-1] == position:
            found[-1] += 1
        else:
            found += [position, 1]
    return found


def rows(
    recorded: Iterable[Recorded], plan: Plan, start: datetime, after: int = 0, language: Language = DEFAULT_LANGUAGE
) -> Iterator[list[Any]]:
    """The rows of steps of one plan, from the event behind `after` on; sentences are in `language`."""
    for step in recorded:
        at = round((step.at - start).total_seconds() * 1000)
        for number, event in enumerate(step.events, step.first):
            if number > after:
                actor = ev.actor_of(event)
                yield [number, at, *_row(event, plan, start, language), *([] if actor is None else [{"ator": actor}])]


def _row(event: ev.Event, plan: Plan, start: datetime, language: Language) -> list[Any]:
    match event:
        case ev.OrchestrationStarted():
            return ["s", len(event.plan.tasks)]
        case ev.ResultsReused(_run, results, _rows, more):
            return ["R", len(results), int(more)]
        case ev.TicketsReused(tickets):
            return ["j", ranges(tickets)]
        case ev.MapRestored(owner, first, total):
            return ["b", owner, first, total, total, _item_timeout(plan, owner)]
        case ev.TicketsDispatched(tickets, attempt):
            return ["d", ranges(tickets), attempt]
        case ev.DispatchConfirmed(tickets):
            return ["c", ranges(position for position, _ in tickets)]
        case ev.TicketConcluded(ticket, attempt):
            return ["k", ticket, attempt, *_known(event.work_ms)]
        case ev.ChildEnded(ticket, attempt, status):
            return ["C", ticket, attempt, status.value]
        case ev.ChildrenCancelled(tickets):
            return ["!", ranges(position for position, _ in tickets)]
        case ev.AttemptFailed(ticket, attempt, cause, _erros, retry_at):
            retry = round((retry_at - start).total_seconds() * 1000)
            return [
                "a",
                ticket,
                attempt,
                cause.value,
                retry,
                message(errors_said(event, language))[:TEXT_MAX_CHARACTERS],
                *_known(event.work_ms),
            ]
        case ev.TicketFailed(ticket, attempt, status, _erros, _dados, definitivo):
            said = message(errors_said(event, language))[:TEXT_MAX_CHARACTERS]
            return ["f", ticket, attempt, status.value, said, int(definitivo), *_known(event.work_ms)]
        case ev.TicketRequeued(ticket, attempt):
            return ["r", ticket, attempt]
        case ev.TicketWithdrawn(ticket, attempt, cause, worker, pause):
            later = None if pause is None else pause // timedelta(milliseconds=1)
            return ["W", ticket, attempt, cause.value, later, "", worker[:TEXT_MAX_CHARACTERS]]
        case ev.LateAnswerKept(ticket, attempt, ok):
            return ["l", ticket, attempt, int(ok)]
        case ev.ConflictingAnswerKept(ticket, attempt, ok):
            return ["o", ticket, attempt, int(ok)]
        case ev.TicketsClosed(tickets, status, why):
            return ["x", ranges(tickets), status.value, _said(why, language)]
        case ev.FanInClosed(gate, passed):
            return ["g", gate, int(passed)]
        case ev.TasksAsked(tickets, output):
            return ["y", ranges(tickets), int(output)]
        case ev.Resolved(resolutions, output):
            return ["v", len(resolutions) + (output is not None)]
        case ev.PlanGrown(owner, first, offset, count, total):
            looped = loop_at(plan, owner) is not None
            due = None if event.due_at is None else round((event.due_at - start).total_seconds() * 1000)
            round_ = [offset, due] if looped else []
            return ["b", owner, first, count, total, _item_timeout(plan, owner), *round_]
        case ev.MapEnded(ticket, status, failed):
            return ["m", ticket, status.value, "" if failed is None else _said(failed, language)]
        case ev.LoopEnded(ticket, status, failed):
            return ["L", ticket, status.value, "" if failed is None else _said(failed, language)]
        case ev.Woken():
            return ["w"]
        case ev.CancelRequested(reason):
            return ["q", reason[:TEXT_MAX_CHARACTERS]]
        case ev.OrchestrationPaused(reason):
            return ["z", 1, reason[:TEXT_MAX_CHARACTERS]]
        case ev.OrchestrationResumed(reason):
            return ["z", 0, reason[:TEXT_MAX_CHARACTERS]]
        case ev.PriorityChanged(priority, reason):
            return ["N", priority, reason[:TEXT_MAX_CHARACTERS]]
        case ev.ApprovalAsked():
            return ["p", "asked", "", ""]
        case ev.ApprovalGiven(by, reason, _actor, task):
            return ["p", "given", by[:TEXT_MAX_CHARACTERS], reason[:TEXT_MAX_CHARACTERS], *_task(task)]
        case ev.ApprovalRefused(by, reason, _actor, task):
            return ["p", "refused", by[:TEXT_MAX_CHARACTERS], reason[:TEXT_MAX_CHARACTERS], *_task(task)]
        case ev.SignalReceived(_signal, name, _dados, taken_by):
            return ["i", name, taken_by]
        case ev.WaitStarted(ticket, due_at):
            wait = plan.profile.wait(ticket)
            until = wait is not None and wait.kind is WaitKind.UNTIL
            due = None if due_at is None else round((due_at - start).total_seconds() * 1000)
            return ["h", ticket, due, int(until)]
        case ev.WaitEnded(ticket, how, status, _signal, _dados, reason):
            return ["t", ticket, how.value, status.value, "" if reason is None else _said(reason, language)]
        case ev.CompensationStarted(undone, reason):
            limit = plan.undo or timedelta()
            return ["u", undone, reason[:TEXT_MAX_CHARACTERS], limit // timedelta(milliseconds=1)]
        case ev.OrchestrationClosed(status):
            return ["e", status.value]
        case ev.NoticeSent(notice, attempt):
            return ["n", notice, attempt, "owed", ""]
        case ev.NoticeDelivered(notice, attempt, detail):
            return ["n", notice, attempt, "delivered", detail[:TEXT_MAX_CHARACTERS]]
        case ev.NoticeFailed(notice, attempt, detail):
            return ["n", notice, attempt, "backoff", detail[:TEXT_MAX_CHARACTERS]]
        case ev.NoticeGivenUp(notice, attempt, detail):
            return ["n", notice, attempt, "given_up", detail[:TEXT_MAX_CHARACTERS]]
        case ev.PolicyAsked(point, tickets):
            return ["P", point.value, ranges(sorted(position for position, _ in tickets if position >= 0))]
        case ev.PolicyEvaluated(point, tickets, findings):
            refused = [one for one in findings if not one.allowed]
            said = "; ".join(text_of(one) for one in refused or findings)[:TEXT_MAX_CHARACTERS]
            return ["V", point.value, len(tickets), len(refused), said, event.source.version]
        case ev.AnswerHeld(ticket, attempt):
            return ["A", ticket, attempt]
        case ev.TicketAllocated(ticket, attempt, chosen):
            others = [[one.agent_id, one.score, one.reason or ""] for one in chosen.candidates[1:]]
            return ["G", ticket, attempt, chosen.agent_id, chosen.method.value, chosen.agent_score, others]
        case _:
            assert_never(event)


def _item_timeout(plan: Plan, owner: int) -> int:
    spec = body_at(plan, owner)
    return (timedelta() if spec is None else spec.task.timeout) // timedelta(milliseconds=1)


def _known(work_ms: int | None) -> list[int]:
    return [] if work_ms is None else [work_ms]


def _task(task: int | None) -> list[int]:
    return [] if task is None else [task]


def _said(why: Reason, language: Language) -> str:
    return say(why, language)[:TEXT_MAX_CHARACTERS]
