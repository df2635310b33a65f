"""The rules of policies: what waits for a verdict, and what follows from it (docs/policies.md).

A plan says at which points policies are asked about its run (`Plan.policies`, recorded when it starts), so a journal
replays without a policy engine. A ticket that undoes another is not asked about: a refusal would leave things half
done.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from oraculo.core.commands import Judge
from oraculo.core.events import (
    AnswerHeld,
    Event,
    PolicyAsked,
    PolicyEvaluated,
    TicketConcluded,
    TicketFailed,
    TicketsClosed,
    TicketsDispatched,
)
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, text_of
from oraculo.core.reasons import Reason, ReasonCode, because
from oraculo.core.vocabulary import Phase, Status, Verdict

if TYPE_CHECKING:
    from oraculo.core.commands import RecordResult
    from oraculo.core.state import Orchestration


@dataclass(slots=True)
class PolicyState:
    """`owed` is what waits for a verdict: position → attempt, 0 of a ticket that is not released yet. `held` are
    answers that wait, by position; `findings` the verdicts that said more than yes."""

    owed: dict[int, int] = field(default_factory=dict)
    held: dict[int, AnswerHeld] = field(default_factory=dict)
    findings: list[PolicyEvaluated] = field(default_factory=list)


def state_of(state: Orchestration) -> PolicyState:
    if state.policy is None:
        state.policy = PolicyState()
    return state.policy


def owed(state: Orchestration) -> dict[int, int]:
    """What waits for a verdict: position → attempt."""
    return {} if state.policy is None else state.policy.owed


def asks_at(state: Orchestration, point: PolicyPoint) -> bool:
    """True when the run is asked for at this point."""
    return bool(state.plan.policies) and point in state.plan.policies


def released(state: Orchestration, positions: list[int]) -> Event:
    """These tickets go out for the first time, or wait for a verdict first."""
    if asks_at(state, PolicyPoint.TICKET) and not state.undoes:
        return PolicyAsked(PolicyPoint.TICKET, [(position, 0) for position in positions])
    return TicketsDispatched(positions, 1)


def plan_asked() -> PolicyAsked:
    return PolicyAsked(PolicyPoint.PLAN, [(THE_PLAN, 0)])


def holds_answer(state: Orchestration, position: int) -> bool:
    """True when a good answer of this ticket waits for a verdict."""
    undoes = state.undoes and position >= state.undoes
    return asks_at(state, PolicyPoint.RESULT) and not undoes and state.plan.tasks[position].kind.is_sent


def held(position: int, attempt: int, answer: RecordResult) -> AnswerHeld:
    return AnswerHeld(position, attempt, answer.dados, answer.erros, answer.digest, answer.actor)


def judge(state: Orchestration, command: Judge) -> tuple[list[Event], Verdict]:
    """Only what is asked counts: a verdict may be given twice, or come when the run has ended. Of an allocation what
    was said is kept while that attempt lasts."""
    if command.point is PolicyPoint.ALLOCATION:
        known = [one for one in command.tickets if _is_open(state, *one)]
    else:
        waits = owed(state)
        known = [one for one in command.tickets if waits.get(one[0]) == one[1]]
    if not known:
        return [], Verdict.IDLE
    positions = {position for position, _ in known}
    findings = [one for one in command.findings if one.ticket in positions]
    return [PolicyEvaluated(command.point, known, findings, command.source)], Verdict.APPLIED


def _is_open(state: Orchestration, position: int, attempt: int) -> bool:
    if not 0 <= position < len(state.tickets):
        return False
    ticket = state.tickets[position]
    return ticket.attempt == attempt and ticket.phase is not Phase.CLOSED


def refusal(event: PolicyEvaluated) -> Reason | None:
    """Why a plan was refused; None when it was not."""
    return next((_reason(event.point, one) for one in event.findings if not one.allowed), None)


def evaluated(state: Orchestration, event: PolicyEvaluated) -> list[Event]:
    """What follows from verdicts on tickets and on answers."""
    refused = {one.ticket: one for one in event.findings if not one.allowed}
    if event.point is PolicyPoint.RESULT:
        return [_answered(state, position, refused.get(position)) for position, _ in event.tickets]
    if event.point is not PolicyPoint.TICKET:
        return []
    allowed = [position for position, _ in event.tickets if position not in refused]
    events: list[Event] = [TicketsDispatched(allowed, 1)] if allowed else []
    for position, finding in refused.items():
        events.append(TicketsClosed([position], Status.ERRO, _reason(event.point, finding)))
    return events


def _answered(state: Orchestration, position: int, finding: PolicyFinding | None) -> Event:
    """An answer that waited counts, or its ticket has failed: no further attempt is made by itself."""
    answer = state_of(state).held[position]
    if finding is None:
        said = (answer.dados, answer.erros, answer.digest, answer.actor)
        return TicketConcluded(position, answer.attempt, *said)
    why = _reason(PolicyPoint.RESULT, finding)
    return TicketFailed(position, answer.attempt, Status.ERRO, [], b"null", True, answer.digest, why, answer.actor)


def _reason(point: PolicyPoint, finding: PolicyFinding) -> Reason:
    code = ReasonCode.POLICY_REFUSED if finding.violations or not finding.error else ReasonCode.POLICY_UNDECIDED
    return because(code, point=point.value, text=text_of(finding))


def fresh(state: Orchestration, positions: list[int]) -> list[int]:
    """Those of these that have not waited for a verdict: they begin to count as started only now."""
    return positions if state.policy is None else [p for p in positions if not state.tickets[p].judged]


def evolve(state: Orchestration, event: PolicyAsked | PolicyEvaluated | AnswerHeld) -> None:
    """Make the event true."""
    match event:
        case PolicyAsked():
            _ask(state, event)
        case AnswerHeld():
            _hold(state, event)
        case PolicyEvaluated():
            _settle(state, event)


def _ask(state: Orchestration, event: PolicyAsked) -> None:
    """Make a question true: what it asks for waits."""
    state_of(state).owed.update(event.tickets)
    if event.point is not PolicyPoint.TICKET:
        return
    positions = [position for position, _ in event.tickets]
    for position in positions:
        ticket = state.tickets[position]
        ticket.phase, ticket.due_at = Phase.JUDGED, None
    if state.blocks is not None:
        state.blocks.started(positions)


def _hold(state: Orchestration, event: AnswerHeld) -> None:
    """Make an answer true that waits for a verdict: its worker is done, and no deadline runs any more."""
    ticket = state.tickets[event.ticket]
    ticket.take_last_answer(event.attempt, event.digest)
    ticket.status, ticket.phase, ticket.due_at = Status.EM_EXECUCAO, Phase.JUDGED, None
    state.owed.discard(event.ticket)
    mine = state_of(state)
    mine.held[event.ticket], mine.owed[event.ticket] = event, event.attempt


def _settle(state: Orchestration, event: PolicyEvaluated) -> None:
    """Make a verdict true."""
    mine = state_of(state)
    if event.point is not PolicyPoint.ALLOCATION:
        for position, _ in event.tickets:
            mine.owed.pop(position, None)
    if event.findings:
        mine.findings.append(event)


def let_go(state: Orchestration, position: int) -> bool:
    """Forget what a ticket that closes waits for; True: it did."""
    mine = state_of(state)
    mine.owed.pop(position, None)
    mine.held.pop(position, None)
    return True


def close(state: Orchestration) -> None:
    """Forget what a run that ends waits for."""
    if state.policy is not None:
        state.policy.owed.clear()


def completed(state: Orchestration, event: TicketConcluded) -> TicketConcluded:
    """The event with the data of the answer that waited, for who decided it without knowing data."""
    answer = None if state.policy is None else state.policy.held.get(event.ticket)
    return event if answer is None else replace(event, dados=answer.dados, erros=answer.erros)
