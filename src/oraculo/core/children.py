"""Children: tasks that are orchestrations of their own.

A child is begun like a message is sent: its ticket is owed until it is there, then it runs. It answers for itself when
it has ended; a ticket that is closed before leaves a child behind that has to end (`Orchestration.to_end`), and that is
owed until it is known, too. A child begins only while its parent's ticket wants it: the transaction that begins it
looks at the parent, too. So a child that is not there when it has to end will never be.
"""

from __future__ import annotations

from oraculo.core.plan import Parent
from oraculo.core.state import Orchestration

DEPTH_MAX = 8  # orchestrations that may stand above a child


def child_id(state: Orchestration, position: int, attempt: int) -> str:
    """The id of a child: that of its parent, the name of its task, the number of an item or a round; a later attempt
    has another one."""
    block = None if state.blocks is None else state.blocks.of(position)
    number = "" if block is None else f"/{block.number(position)}"
    again = "" if attempt == 1 else f"~{attempt}"
    return f"{state.correlation_id}/{state.plan.profile.name_of(position)}{number}{again}"


def parent_of(state: Orchestration, position: int, attempt: int) -> Parent:
    """What a child is told of the orchestration that it belongs to."""
    above = 0 if state.plan.parent is None else state.plan.parent.depth
    return Parent(state.run, state.correlation_id, position, attempt, above + 1)


def is_wanted(state: Orchestration | None, parent: Parent) -> bool:
    """True while the parent, as it stands, wants this child to begin."""
    return state is not None and not state.status.final and state.wants_answer(parent.position, parent.attempt)
