"""An outline as lines of text: one line for each task, and a rail from it down to every task that needs it.

●      videos     fonte youtube
│ ●    artigos    fonte blog
●─╯    relatorio  executador relatorio
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from oraculo.plans.drawing.outline import OutlineTask, PlanOutline

RAILS_MAX = 24  # with more, tasks are listed with the names of what they need
NAME_MAX_CHARS = 30
_TO_ASCII = str.maketrans("●│─├┤╰╯┼┴·←…", "*|-||''+'.<.")


@dataclass(frozen=True, slots=True)
class DrawnTask:
    """One line: the rails, the task, and the rails that go on below it."""

    rails: str
    task: OutlineTask
    below: str


def lines_of(plan: PlanOutline, *, ascii_only: bool = False) -> list[str]:
    """The drawing, line by line, without what surrounds the tasks."""
    lines = list(_lines(plan, ""))
    return [line.translate(_TO_ASCII) for line in lines] if ascii_only else lines


def _lines(plan: PlanOutline, indent: str) -> Iterator[str]:
    drawn = draw(plan)
    names = [task.name for task in plan.tasks]
    width = min(max(map(len, names), default=0), NAME_MAX_CHARS)
    rails = max((len(one.rails) for one in drawn or ()), default=0)
    by_id = {task.id: task.name for task in plan.tasks}
    for number, task in enumerate(plan.tasks):
        text = f"{task.name:<{width}}  {' · '.join((task.detail, *task.notes))}"
        if drawn is not None:
            yield f"{indent}{drawn[number].rails:<{rails}}  {text}".rstrip()
            below = f"{drawn[number].below:<{rails}}  "
        else:
            needs = ", ".join(by_id[need] for need in task.needs[:RAILS_MAX]) + (
                ", …" if len(task.needs) > RAILS_MAX else ""
            )
            yield f"{indent}{task.level + 1:>4}  {text}{f'  ← {needs}' if needs else ''}".rstrip()
            below = " " * 6
        if task.child is not None:
            yield from _lines(task.child, f"{indent}{below}    ")


def draw(plan: PlanOutline) -> list[DrawnTask] | None:
    """The rails beside each task; None when there would be too many."""
    waiting = Counter(need for task in plan.tasks for need in task.needs)
    rails: list[str | None] = []
    drawn: list[DrawnTask] = []
    above = -1  # the column of the last node: what stands right below it is joined to it
    for task in plan.tasks:
        inputs = {rails.index(need) for need in task.needs}
        waiting.subtract(task.needs)
        ending = {column for column in inputs if not waiting[rails[column] or ""]}
        column = min(ending) if ending else _free(rails, max(inputs, default=-1) + 1, above)
        rails.extend([None] * (column + 1 - len(rails)))
        if len(rails) > RAILS_MAX:
            return None
        above = column
        row = _row(rails, inputs, ending, column)
        for one in ending:
            rails[one] = None
        rails[column] = task.id if waiting[task.id] else None
        while rails and rails[-1] is None:
            rails.pop()
        below = " ".join("│" if rail is not None else " " for rail in rails)
        drawn.append(DrawnTask(row, task, below))
    return drawn


def _free(rails: list[str | None], first: int, above: int) -> int:
    column = first
    while column == above or (column < len(rails) and rails[column] is not None):
        column += 1
    return column


def _row(rails: list[str | None], inputs: set[int], ending: set[int], column: int) -> str:
    low, high = min((*inputs, column)), max((*inputs, column))
    cells: list[str] = []
    for at, rail in enumerate(rails):
        if at == column:
            cell = "●"
        elif at in inputs:
            outermost = at in (low, high)
            if at in ending:
                cell = ("╰" if at < column else "╯") if outermost else "┴"
            else:
                cell = ("├" if at < column else "┤") if outermost else "┼"
        elif rail is not None:
            cell = "│"
        else:
            cell = "─" if low < at < high else " "
        cells.append(cell)
        cells.append("─" if low <= at < high else " ")
    return "".join(cells).rstrip()
