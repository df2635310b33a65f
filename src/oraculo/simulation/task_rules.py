"""The rules of fan-ins and of plans with named tasks, said again without the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from datetime import datetime, timedelta
from enum import Enum

import orjson

from oraculo.core import events as ev
from oraculo.core.named_tasks import NamedTask, named_in
from oraculo.core.plan import Gate, Plan, Task
from oraculo.core.vocabulary import FanIn, Status
from oraculo.simulation.facts import Seen
from oraculo.simulation.wait_rules import follows


class Weight(Enum):
    """What a task counts as for the gates that it feeds."""

    OPEN = "open"
    GOOD = "good"
    NOTHING = "nothing"
    BAD = "bad"


def spec_of(plan: Plan, position: int) -> NamedTask | None:
    """What is said of a task of the plan itself; None for items of maps."""
    named = named_in(plan)
    return None if named is None or position >= len(named.named) else named.named[position]


def weight(plan: Plan, position: int, ticket: Seen) -> Weight:
    if ticket.phase != "closed":
        return Weight.OPEN
    if ticket.status in (Status.CONCLUIDA, Status.PARCIAL):
        return Weight.GOOD
    spec = spec_of(plan, position)
    optional = spec is not None and spec.is_optional
    return Weight.NOTHING if ticket.status is Status.IGNORADA or optional else Weight.BAD


def verdict(plan: Plan, gate: Gate, tickets: Sequence[Seen]) -> bool | None:
    """Whether a gate passes, cannot pass, or is not decided."""
    inputs = [weight(plan, position, tickets[position]) for position in gate.inputs]
    good, bad, left = (inputs.count(one) for one in (Weight.GOOD, Weight.BAD, Weight.OPEN))
    match gate.mode:
        case FanIn.TODOS:
            return None if left else good >= gate.needed
        case FanIn.TODAS_OK if bad:
            return False
        case FanIn.TODAS_OK:
            return None if left else good > 0
        case FanIn.FECHADAS:
            return None if left else good + bad > 0
    wanted = 1 if gate.mode is FanIn.PRIMEIRO else gate.needed
    if good >= wanted:
        return True
    return False if good + left < wanted and (bad or not left) else None


def may_be_skipped(plan: Plan, position: int, tickets: Sequence[Seen]) -> bool:
    """Everything that the task waits for was skipped."""
    after = plan.tasks[position].after
    inputs = () if after is None else plan.gates[after].inputs
    return bool(inputs) and all(weight(plan, p, tickets[p]) is Weight.NOTHING for p in inputs)


def is_spare(plan: Plan, position: int, gates: Sequence[bool | None]) -> bool:
    """Every gate that the task feeds has closed, and one of them passed."""
    fed = [gates[number] for number in plan.tasks[position].feeds]
    return True in fed and None not in fed


def due_of(task: Task, ticket: Seen) -> datetime | None:
    """When an attempt that runs is out of time; a child may take as long as it takes."""
    return None if ticket.confirmed_at is None or not task.timeout else ticket.confirmed_at + task.timeout


def next_of(task: Task, ticket: Seen) -> datetime | None:
    """When something happens to a ticket by itself: it is tried again, or is out of time."""
    if ticket.phase == "backoff":
        return ticket.retry_at
    return due_of(task, ticket) if ticket.phase == "running" else None


def is_final(spec: NamedTask | None, codes: Sequence[object]) -> bool:
    """The plan says that a failure with one of these codes is not tried again."""
    return spec is not None and bool(set(spec.final_codes) & set(map(str, codes)))


def codes(event: ev.AttemptFailed | ev.TicketFailed) -> list[object]:
    """The codes of the errors that an attempt failed with."""
    return [erro.get("codigo") for erro in event.erros]


def longest_wait(plan: Plan, spec: NamedTask | None) -> timedelta:
    return plan.backoff.cap if spec is None or spec.backoff is None else spec.backoff.cap


def ending(
    plan: Plan, tickets: Sequence[Seen], gates: Sequence[bool | None], refused: Set[int] = frozenset()
) -> Status:
    """How a plan with named tasks ends by itself: a failure is absorbed when its task is optional, or feeds fan-ins
    that all passed. What a fan-in cancelled that could not pass counts as failed, or as refused when something before
    it was; a failure weighs more. A map answers for its items, which are not among these tickets."""
    failed = was_refused = False
    for position, ticket in enumerate(tickets):
        task = plan.tasks[position]
        failed = failed or ticket.status is Status.PARCIAL
        doomed = task.after is not None and gates[task.after] is False
        blocked = ticket.status is Status.CANCELADA and doomed and not ticket.spare
        if blocked or position in refused or ticket.status in (Status.ERRO, Status.TIMEOUT):
            failed = True
            spec = spec_of(plan, position)
            passed = [gates[number] is True for number in task.feeds]
            if not (spec is not None and spec.is_optional) and not (passed and all(passed)):
                if not follows(plan, position, tickets, refused):
                    return Status.ERRO
                was_refused = True
    if was_refused:
        return Status.CANCELADA
    return Status.PARCIAL if failed else Status.CONCLUIDA


def given_to(
    plan: Plan, position: int, tickets: Sequence[Seen], results: Callable[[int], object]
) -> list[dict[str, object]]:
    """What the order of a task carries of the tasks in its `depende`, as they were when it began; `results`: what a map
    or a loop gave."""
    spec, began = spec_of(plan, position), tickets[position].released_at
    given: list[dict[str, object]] = []
    for one in spec.needs if spec is not None else ():
        task, seen, named = plan.tasks[one], tickets[one], spec_of(plan, one)
        dados: object = orjson.loads(seen.dados)
        body = None if named is None else named.map or named.loop
        if body is not None:
            task, dados = body.task, results(one)
        ended = seen.closed_at is not None and began is not None and seen.closed_at <= began
        given.append(
            {
                "tarefa": "" if named is None else named.name,
                task.kind.key: task.name or None,
                "status": seen.status.value if ended else "pendente",
                "dados": dados if ended else None,
            }
        )
    return given


def unique_name(plan: Plan, position: int) -> bool:
    """No other task of the plan has this kind and name, and no item or round ever will: an answer that names neither
    ticket nor attempt finds it."""
    wanted, named = plan.tasks[position], named_in(plan)
    bodies = [one.map or one.loop for one in named.named] if named is not None else []
    grown = [body.task for body in bodies if body is not None]
    if any((task.kind, task.name) == (wanted.kind, wanted.name) for task in grown):
        return False
    return sum(1 for task in plan.tasks if (task.kind, task.name) == (wanted.kind, wanted.name)) == 1
