"""Decisions about a whole run: how it began, what people did with it, what was undone, and why it ended so."""

from __future__ import annotations

from collections import Counter

from oraculo.core import events as ev
from oraculo.core.flow import score_sentences
from oraculo.core.flow.profile import flow_in
from oraculo.core.sentences import errors_of, message, say
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.vocabulary import Status
from oraculo.wire.why import words
from oraculo.wire.why.telling import DecisionTold, Telling, because, instant

REASONS_SHOWN = 5


def started(telling: Telling, event: ev.OrchestrationStarted) -> DecisionTold:
    """Who asked for a run, by when it has to end, and what it is a part of."""
    plan = event.plan
    word = "started" if event.actor else "started.unknown"
    told = telling.say(word, actor=event.actor, n=len(plan.tasks))
    details = [
        telling.say("started.no-deadline")
        if event.deadline is None
        else telling.say("started.deadline", until=instant(event.deadline))
    ]
    if event.origin is not None:
        details.append(telling.say("started.retry", origin=local_name(event.origin.correlation_id)))
    if plan.parent is not None:
        details.append(telling.say("started.child", parent=local_name(plan.parent.correlation_id)))
    if plan.policies:
        points = ", ".join(words.point(telling.language, point) for point in plan.policies)
        details.append(telling.say("started.policies", points=points))
    flow = flow_in(plan)
    if flow is not None and flow.score is not None:
        explained = score_sentences.explain(flow.score, flow.risk_band, flow.priority, telling.language)
        details.append(telling.say("started.score", explained=explained))
    return DecisionTold(told, details)


def taken_over(telling: Telling, event: ev.ResultsReused) -> DecisionTold:
    origin = telling.state.origin
    name = str(event.from_run) if origin is None else local_name(origin.correlation_id)
    return DecisionTold(telling.say("taken-over", n=len(event.results), origin=name))


def cancelled(telling: Telling, event: ev.CancelRequested) -> DecisionTold:
    told = telling.say("cancelled", by=telling.by(event.actor), why=because(event.reason))
    return DecisionTold(told, [telling.say("cancelled.undo")] if event.undo else [])


def paused(telling: Telling, event: ev.OrchestrationPaused | ev.OrchestrationResumed) -> DecisionTold:
    word = "paused" if isinstance(event, ev.OrchestrationPaused) else "resumed"
    return DecisionTold(telling.say(word, by=telling.by(event.actor), why=because(event.reason)))


def prioritised(telling: Telling, event: ev.PriorityChanged) -> DecisionTold:
    by, why = telling.by(event.actor), because(event.reason)
    return DecisionTold(telling.say("prioritised", n=event.priority, by=by, why=why))


def decided(telling: Telling, event: ev.ApprovalGiven | ev.ApprovalRefused) -> DecisionTold | None:
    """What a person said of the plan, or of a task that waited for it."""
    if event.task is not None and not telling.concerns((event.task,)):
        return None
    word = "approval.given" if isinstance(event, ev.ApprovalGiven) else "approval.refused"
    said = telling.say(word, who=event.by or event.actor or "?", why=because(event.reason))
    return DecisionTold(said if event.task is None else f"{telling.name(event.task)}: {said}", [], event.task)


def signalled(telling: Telling, event: ev.SignalReceived) -> DecisionTold | None:
    if event.taken_by is None:
        if telling.only is not None:
            return None
        return DecisionTold(telling.say("signal.kept", name=event.name, by=telling.by(event.actor)))
    if not telling.concerns((event.taken_by,)):
        return None
    task = telling.name(event.taken_by)
    told = telling.say("signal.taken", name=event.name, by=telling.by(event.actor), task=task)
    return DecisionTold(told, [], event.taken_by)


def undoing(telling: Telling, event: ev.CompensationStarted) -> DecisionTold | None:
    if not telling.concerns(event.undone):
        return None
    told = telling.say("undo", n=len(event.undone), cause=words.undoing(telling.language, event.reason))
    names = ", ".join(telling.name(position) for position in event.undone[:REASONS_SHOWN])
    details = [telling.say("undo.order", names=names)]
    if event.ending is not None:
        details.append(telling.say("undo.ending", status=telling.status(event.ending)))
    return DecisionTold(told, details)


def ended(telling: Telling, status: Status) -> DecisionTold:
    """How a run ended and what made it so: what its tickets came to, and the fan-ins that were not met."""
    state = telling.state
    details = [
        telling.say("ended.gate", mode=words.mode(telling.language, gate.mode), needed=gate.needed, n=len(gate.inputs))
        for gate, count in zip(state.plan.gates, state.gates, strict=True)
        if count.passed is False and gate.essential
    ]
    if state.undo_reason is not None:
        details.append(telling.say("ended.undone", cause=words.undoing(telling.language, state.undo_reason)))
    if state.output_fault is not None:
        details.append(telling.say("ended.output", why=say(state.output_fault, telling.language)))
    return DecisionTold(telling.say("ended", status=telling.status(status)), [*details, *_counts(telling, state)])


def _counts(telling: Telling, state: Orchestration) -> list[str]:
    """How many tickets ended how and why, the most frequent first; what went well last."""
    found: Counter[tuple[Status, str]] = Counter()
    for ticket in state.tickets:
        why = ""
        if ticket.status is not Status.CONCLUIDA:
            why = message(errors_of(ticket, telling.language))
            if not why and ticket.reason is not None:
                why = say(ticket.reason, telling.language)
        found[ticket.status, why] += 1
    well = found.pop((Status.CONCLUIDA, ""), 0)
    lines = [
        telling.say("ended.why" if why else "ended.count", n=n, status=telling.status(status), why=why)
        for (status, why), n in found.most_common(REASONS_SHOWN)
    ]
    return [*lines, *([telling.say("ended.count", n=well, status=telling.status(Status.CONCLUIDA))] if well else [])]


def notice_given_up(telling: Telling, event: ev.NoticeGivenUp) -> DecisionTold:
    target = telling.state.notices[event.notice].target
    return DecisionTold(telling.say("notice", target=target, n=event.attempt, detail=event.detail))
