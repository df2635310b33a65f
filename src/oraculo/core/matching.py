"""Which ticket an answer belongs to.

By `ticket_id`; without one, by the only open ticket of that source or executor; without a name, by the only open ticket
of that kind. Two candidates: `ambiguous`, for a human; never a guess. A ticket that undoes another is found by its
`ticket_id` alone where what comes without one may be a late answer of what is undone.

An executor may answer with the event of a collection, `resultado_coleta`, as the oldest workers do that were sent
nothing but `iniciar_coleta`. It is understood when it gives its name, or when the plan collects nothing at all;
otherwise it may as well be the second answer of a collection, so it is `ambiguous`.
"""

from __future__ import annotations

from oraculo.core.commands import RecordResult
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Kind, Phase, Status, Verdict

_OTHER = {Kind.COLETA: Kind.EXECUCAO, Kind.EXECUCAO: Kind.COLETA}


def match(state: Orchestration, answer: RecordResult) -> int | Verdict:
    """The position of the ticket that an answer belongs to, or why it cannot be told."""
    if answer.position is not None:
        return answer.position
    if answer.ticket is not None:
        parsed = parse_ticket_id(answer.ticket)
        if parsed is None or parsed[0] != state.run or parsed[1] >= len(state.tickets):
            return Verdict.UNKNOWN_TICKET
        kind = state.plan.tasks[parsed[1]].kind
        return Verdict.UNKNOWN_TICKET if kind.grows or kind is Kind.FILHA else parsed[1]
    kind = answer.kind or Kind.COLETA
    if not kind.is_sent:
        return Verdict.UNKNOWN_TICKET
    if state.plan.rules < 4:
        return _by_rules_before_4(state, kind, answer.name)
    if answer.name is not None:
        for named in (kind, _OTHER[kind]):
            if state.named(named, answer.name):
                return _named(state, named, answer.name)
    return _unnamed(state, kind, answer)


def _named(state: Orchestration, kind: Kind, name: str) -> int | Verdict:
    """The only open ticket of a name; when none is open, the only closed one, as a late or a second answer."""
    candidates = state.open_named(kind, name)
    if candidates:
        return _only(_sent(state, candidates))
    return _only(state.named(kind, name))


def _unnamed(state: Orchestration, kind: Kind, answer: RecordResult) -> int | Verdict:
    """No name, or one that the plan does not know: the only open ticket of that kind, if there is but one."""
    same_kind = _of_kind(state, kind)
    candidates = _open(state, same_kind)
    if state.ending is not None and answer.name is None and not _cut_off(state, same_kind):
        candidates = _undoing(state, kind)
    if candidates:
        return _only(_sent(state, candidates))
    for position in same_kind:
        if state.tickets[position].digest and state.tickets[position].digest == answer.digest:
            return position  # the same bytes again
    if kind is Kind.COLETA:
        executions = _sent(state, _open(state, _of_kind(state, Kind.EXECUCAO)))
        if executions:
            return Verdict.AMBIGUOUS if same_kind else _only(executions)
    return Verdict.UNKNOWN_TICKET if answer.name is not None else _only(same_kind)


def _only(positions: list[int]) -> int | Verdict:
    if len(positions) == 1:
        return positions[0]
    return Verdict.AMBIGUOUS if positions else Verdict.UNKNOWN_TICKET


def _of_kind(state: Orchestration, kind: Kind) -> list[int]:
    return [position for position, task in enumerate(state.plan.tasks[: state.asked]) if task.kind is kind]


def _open(state: Orchestration, positions: list[int]) -> list[int]:
    return [position for position in positions if state.tickets[position].phase is not Phase.CLOSED]


def _sent(state: Orchestration, positions: list[int]) -> list[int]:
    """Those whose order has gone out at least once: the others cannot have been answered."""
    return [position for position in positions if state.tickets[position].attempt]


def _cut_off(state: Orchestration, positions: list[int]) -> bool:
    """True when an answer of one of these may still come: it was sent, and closed without one."""
    cut = (Status.TIMEOUT, Status.CANCELADA)
    return any(state.tickets[p].attempt and state.tickets[p].status in cut for p in positions)


def _undoing(state: Orchestration, kind: Kind) -> list[int]:
    """The open tickets of a kind that undo others."""
    behind = range(state.asked, len(state.tickets))
    return _open(state, [position for position in behind if state.plan.tasks[position].kind is kind])


def _by_rules_before_4(state: Orchestration, kind: Kind, name: str | None) -> int | Verdict:
    """As orchestrations of those rules began, so they end: a workflow decides the same when it is replayed."""
    if name is not None and state.named(kind, name):
        return _named(state, kind, name)
    same_kind = _of_kind(state, kind)
    candidates = _open(state, same_kind)
    return _only(_sent(state, candidates)) if candidates else _only(same_kind)
