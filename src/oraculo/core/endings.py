"""How an orchestration ends whose tickets are all closed: one rule for each `Ending`."""

from __future__ import annotations

from collections.abc import Callable

from oraculo.core.reasons import ReasonCode
from oraculo.core.state import Orchestration
from oraculo.core.ticket_state import Ticket
from oraculo.core.vocabulary import Ending, Status
from oraculo.core.waiting import behind_refusals


def status_of(state: Orchestration) -> Status:
    """The status by the rule that the plan names."""
    return _ENDINGS[state.plan.ending](state)


def _by_gates(state: Orchestration) -> Status:
    """`erro` when an essential gate failed, `parcial` when a ticket did, else `concluida`."""
    if any(count.passed is False and gate.essential for gate, count in zip(state.plan.gates, state.gates, strict=True)):
        return Status.ERRO
    failed = any(ticket.status in (Status.ERRO, Status.TIMEOUT) for ticket in state.tickets)
    return Status.PARCIAL if failed else Status.CONCLUIDA


def _by_majority(state: Orchestration) -> Status:
    """`concluida` when every ticket concluded, `erro` when more than half did not, else `parcial`; tickets that undo
    others do not count."""
    asked = state.tickets[: state.asked]
    missing = sum(1 for one in asked if one.status is not Status.CONCLUIDA)
    if not missing:
        return Status.CONCLUIDA
    return Status.ERRO if missing > len(asked) // 2 else Status.PARCIAL


def _by_absorption(state: Orchestration) -> Status:
    """`erro` when a task failed and no fan-in took that in, `cancelada` when only refusals were not taken in, `parcial`
    when one did, else `concluida`. A map answers for its items, a loop for its rounds."""
    tickets = state.tickets if state.blocks is None else state.tickets[: state.blocks.planned]
    failed = [position for position, ticket in enumerate(tickets) if _is_bad(ticket)]
    left = [position for position in failed if not _is_absorbed(state, position)]
    if left:
        return Status.CANCELADA if behind_refusals(state).issuperset(left) else Status.ERRO
    partial = failed or state.output_fault is not None or any(one.status is Status.PARCIAL for one in tickets)
    return Status.PARCIAL if partial else Status.CONCLUIDA


def _is_bad(ticket: Ticket) -> bool:
    if ticket.status is Status.CANCELADA:
        return ticket.reason is not None and ticket.reason.code in _BLOCKED
    return ticket.status in (Status.ERRO, Status.TIMEOUT)


def _is_absorbed(state: Orchestration, position: int) -> bool:
    """An optional task is; another one is when it feeds gates, and all of them passed."""
    feeds = state.plan.tasks[position].feeds
    return state.plan.profile.optional(position) or (
        bool(feeds) and all(state.gates[number].passed for number in feeds)
    )


_BLOCKED = (ReasonCode.DEPENDENCY_FAILED, ReasonCode.FAN_IN_UNREACHABLE, ReasonCode.NOT_APPROVED)
_ENDINGS: dict[Ending, Callable[[Orchestration], Status]] = {
    Ending.ESSENTIAL: _by_gates,
    Ending.MAJORITY: _by_majority,
    Ending.ABSORBED: _by_absorption,
}
