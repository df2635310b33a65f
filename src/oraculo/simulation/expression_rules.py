"""The rules of expressions in plans with named tasks, said again without the core: nothing starts, is skipped or fails
that was not asked and resolved, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oraculo.core import events as ev
from oraculo.core.named_tasks import GrownTasks, named_in
from oraculo.core.plan import Plan
from oraculo.core.resolution import Outcome
from oraculo.core.vocabulary import Status
from oraculo.simulation.facts import Seen

RULE = "evaluated once, when asked"
# The phases of a ticket between its gate and its first order.
ASKED, RESOLVED = "asked", "resolved"
STOPPED, SPENT = "to stop", "spent"  # of loops
AFTER = {
    Outcome.GO: RESOLVED,
    Outcome.SKIP: "to skip",
    Outcome.FAIL: "to fail",
    Outcome.STOP: STOPPED,
    Outcome.SPENT: SPENT,
}


class ExpressionRules:
    """Follows one journal; `wrong` takes what is violated."""

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self.output_asked = False
        self.output_failed: bool | None = None  # None: it was not resolved

    def asked(
        self,
        event: ev.TasksAsked,
        plan: Plan,
        tickets: Sequence[Seen],
        gates: Sequence[bool | None],
        again: Callable[[int, Sequence[Seen]], bool],
    ) -> None:
        """`again`: whether a task may ask that has asked before."""
        for position in event.tickets:
            after = plan.tasks[position].after
            first = tickets[position].phase == "waiting" and asks(plan, position)
            if not first and not again(position, tickets):
                self._wrong(RULE, f"ticket {position} asked while {tickets[position].phase}")
            if after is not None and gates[after] is not True:
                self._wrong("no dispatch before its gate", f"ticket {position} asked, gate {after}")
            tickets[position].phase = ASKED
        if event.output:
            if self.output_asked or any(ticket.phase != "closed" for ticket in tickets):
                self._wrong(RULE, "the output was asked twice, or too early")
            self.output_asked = True

    def resolved(self, event: ev.Resolved, tickets: Sequence[Seen]) -> None:
        for one in event.resolutions:
            if tickets[one.ticket].phase != ASKED:
                self._wrong(RULE, f"ticket {one.ticket} resolved while {tickets[one.ticket].phase}")
            tickets[one.ticket].phase = AFTER[one.outcome]
        if event.output is not None:
            if not self.output_asked or self.output_failed is not None:
                self._wrong(RULE, "the output was resolved and not asked, or twice")
            self.output_failed = event.output.outcome is Outcome.FAIL

    def may_start(self, plan: Plan, position: int, ticket: Seen) -> bool:
        return ticket.phase == (RESOLVED if asks(plan, position) else "waiting")

    def may_close(self, ticket: Seen, status: Status) -> bool:
        """Whether evaluating alone explains that a ticket was closed."""
        wanted = {Status.IGNORADA: Outcome.SKIP, Status.ERRO: Outcome.FAIL}.get(status)
        return wanted is not None and ticket.phase == AFTER[wanted]

    def quiet(self, tickets: Sequence[Seen]) -> None:
        left = [number for number, ticket in enumerate(tickets) if ticket.phase in AFTER.values()]
        if left:
            self._wrong(RULE, f"tickets {left} were resolved and nothing came of it")

    @property
    def waits_for_output(self) -> bool:
        return self.output_asked and self.output_failed is None

    def ending(self, plan: Plan, ended: Status) -> Status:
        """How a plan ends by itself whose tasks make it end like this."""
        named = named_in(plan)
        if named is None or named.output == b"null" or ended in (Status.ERRO, Status.CANCELADA):
            return ended
        if self.output_failed is None:
            self._wrong(RULE, f"ended as {ended.value} without its output")
        return Status.PARCIAL if self.output_failed else ended


def asks(plan: Plan, position: int) -> bool:
    named = named_in(plan)
    if named is None or position < len(named.named):
        return named is not None and named.named[position].asks
    return isinstance(named, GrownTasks) and named.spec(position).undoes and named.spec(position).asks
