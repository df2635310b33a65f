"""Decisions about tickets other than how their attempts went: released, barred, grown, closed, asked of policies."""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.core import events as ev
from oraculo.core.blocks import loop_at
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, PolicyViolation, text_of
from oraculo.core.policing import asks_at
from oraculo.core.sentences import say, say_optional
from oraculo.wire import policy_views
from oraculo.wire.why import words
from oraculo.wire.why.telling import DecisionTold, Telling, because, instant


def released(telling: Telling, event: ev.TicketsDispatched) -> DecisionTold | None:
    """Why tickets went out for the first time, or which attempt of them did."""
    if not telling.concerns(event.tickets):
        return None
    names, ticket = telling.names(event.tickets), telling.one_of(event.tickets)
    if event.attempt > 1:
        told = telling.say("released.again", names=names, n=event.attempt)
        return DecisionTold(told, [], ticket, event.attempt)
    why = _why_released(telling, event.tickets if ticket is None else [ticket])
    return DecisionTold(telling.say("released", names=names, why=why), [], ticket, event.attempt)


def _why_released(telling: Telling, positions: Sequence[int]) -> str:
    plan = telling.state.plan
    if asks_at(telling.state, PolicyPoint.TICKET) and not telling.state.undoes:
        return telling.say("released.judged")
    after = {plan.tasks[position].after for position in positions}
    if len(after) == 1 and (number := after.pop()) is not None:
        return _of_gate(telling, number, passed=True)
    return telling.say("released.first")


def _of_gate(telling: Telling, number: int, *, passed: bool) -> str:
    gate = telling.state.plan.gates[number]
    return words.gate(telling.language, gate.mode, gate.needed, len(gate.inputs), passed=passed)


def fan_in(telling: Telling, event: ev.FanInClosed) -> DecisionTold | None:
    """What a fan-in found for the tickets behind it. One behind which nothing stands tells nothing of a ticket."""
    behind = telling.state.plan.gates[event.gate].releases
    if not behind or not telling.concerns(behind):
        return None
    why = _of_gate(telling, event.gate, passed=event.passed)
    word = "gate.passed" if event.passed else "gate.failed"
    return DecisionTold(telling.say(word, names=telling.names(behind), why=why), [], telling.one_of(behind))


def closed(telling: Telling, event: ev.TicketsClosed) -> DecisionTold | None:
    if not telling.concerns(event.tickets):
        return None
    why = say(event.reason, telling.language)
    told = telling.say("closed", names=telling.names(event.tickets), status=telling.status(event.status), why=why)
    return DecisionTold(told, [], telling.one_of(event.tickets))


def reused(telling: Telling, event: ev.TicketsReused) -> DecisionTold | None:
    if not telling.concerns(event.tickets):
        return None
    return DecisionTold(telling.say("reused", names=telling.names(event.tickets)), [], telling.one_of(event.tickets))


def restored(telling: Telling, event: ev.MapRestored) -> DecisionTold | None:
    if not telling.concerns((event.owner, *range(event.first, event.first + event.total))):
        return None
    return DecisionTold(telling.say("restored", names=telling.name(event.owner), n=event.total), [], event.owner)


def grown(telling: Telling, event: ev.PlanGrown) -> DecisionTold | None:
    """The items that a map got, and which do not start; or one more round of a loop."""
    if not telling.concerns((event.owner, *range(event.first, event.first + event.count))):
        return None
    name = telling.name(event.owner)
    if loop_at(telling.state.plan, event.owner) is not None:
        told = telling.say("grown.round", names=name, n=event.offset)
    else:
        told = telling.say("grown", names=name, n=event.offset + event.count, total=event.total)
    details = [telling.say("grown.idle", n=len(one.items), why=one.why.expression) for one in event.idle]
    if event.due_at is not None:
        details.append(telling.say("grown.starts", until=instant(event.due_at)))
    return DecisionTold(told, details, event.owner)


def growth_ended(telling: Telling, event: ev.MapEnded | ev.LoopEnded) -> DecisionTold:
    why = because(say_optional(event.reason, telling.language) or "")
    told = telling.say("grown.ended", names=telling.name(event.ticket), status=telling.status(event.status), why=why)
    return DecisionTold(told, [], event.ticket)


def child_ended(telling: Telling, event: ev.ChildEnded) -> DecisionTold:
    told = telling.say("child", names=telling.name(event.ticket), status=telling.status(event.status))
    return DecisionTold(told, [], event.ticket, event.attempt)


def children_cancelled(telling: Telling, event: ev.ChildrenCancelled) -> DecisionTold | None:
    positions = [position for position, _ in event.tickets]
    if not telling.concerns(positions):
        return None
    return DecisionTold(telling.say("child.ended", names=telling.names(positions)), [], telling.one_of(positions))


def wait_started(telling: Telling, event: ev.WaitStarted) -> DecisionTold:
    name = telling.name(event.ticket)
    if event.due_at is None:
        return DecisionTold(telling.say("waits", names=name), [], event.ticket)
    return DecisionTold(telling.say("waits.until", names=name, until=instant(event.due_at)), [], event.ticket)


def wait_ended(telling: Telling, event: ev.WaitEnded) -> DecisionTold:
    how = words.wait_end(telling.language, event.how)
    told = telling.say("wait.ended", names=telling.name(event.ticket), how=how, status=telling.status(event.status))
    said = say_optional(event.reason, telling.language)
    return DecisionTold(told, [said] if said else [], event.ticket)


# -- policies ----------------------------------------------------------------------------------------------------------


def judged(telling: Telling, event: ev.PolicyEvaluated) -> DecisionTold | None:
    """What policies said of the plan or of tickets, which they were, and what they found."""
    positions = [position for position, _ in event.tickets]
    of_plan = THE_PLAN in positions
    if not of_plan and not telling.concerns(positions):
        return None
    findings = [one for one in event.findings if of_plan or telling.only in (None, one.ticket)]
    told = telling.say(
        "policy",
        point=words.point(telling.language, event.point),
        names=telling.say("policy.plan") if of_plan else telling.names(positions),
        said=_verdict(telling, findings),
    )
    source = event.source
    by = telling.say(
        "policy.by", engine=source.engine, version=source.version or "–", decision=source.decision_id or "–"
    )
    details = [by, *(line for one in findings for line in _rules(telling, one))]
    documents = {"parecer": policy_views.evaluated(telling.state.run, event)}
    ticket = None if of_plan else telling.one_of(positions)
    return DecisionTold(
        told, details, ticket, None if ticket is None else dict(event.tickets)[ticket] or None, documents
    )


def _verdict(telling: Telling, findings: Sequence[PolicyFinding]) -> str:
    refused = next((one for one in findings if not one.allowed), None)
    if refused is not None and refused.error and not refused.violations:
        return telling.say("policy.closed", text=refused.error)
    if refused is not None:
        return telling.say("policy.refused", text=text_of(refused))
    undecided = next((one for one in findings if one.error), None)
    if undecided is not None:
        return telling.say("policy.open", text=undecided.error)
    return telling.say("policy.warned" if findings else "policy.allowed")


def _rules(telling: Telling, finding: PolicyFinding) -> list[str]:
    lines = []
    for one in (*finding.violations, *finding.warnings):
        lines.append(telling.say("policy.rule", policy=one.policy, rule=one.rule, text=one.message or one.severity))
        if one.expected or one.actual:
            lines.append(_values(telling, one))
    return lines


def _values(telling: Telling, one: PolicyViolation) -> str:
    return telling.say("policy.values", field=one.field or one.rule, expected=one.expected, actual=one.actual)
