"""What a loop asks for → its next round, or that it is over.

A round sees the loop itself by its name, with what the round before gave, and its own number as `indice`; the condition
sees what the last round gave, and that round's number.
"""

from __future__ import annotations

from dataclasses import replace

from oraculo.core import loops
from oraculo.core.commands import Grow
from oraculo.core.named_tasks import LoopSpec
from oraculo.core.resolution import Outcome, Resolution
from oraculo.runtime.evaluation_names import ItemNames
from oraculo.runtime.evaluator import Evaluator, shown
from oraculo.runtime.map_rows import Rows, place, word_of
from oraculo.wire import strict_json

STOP_WHEN = "repete.pare_quando"


def next_round(evaluator: Evaluator, spec: LoopSpec, owner: int, rounds: int, tickets: int) -> Resolution | list[Grow]:
    """The round behind so many others, in a run that has so many tickets; or why there is none."""
    names = ItemNames(evaluator.names, spec.item.name)
    names.item = evaluator.names.get(spec.item.name)
    if rounds:
        names.index = rounds - 1
        condition = strict_json.loads_trusted(spec.stop_when)
        inside = evaluator.inside(names)
        stop = inside.condition(condition, STOP_WHEN)
        evaluator.charge(inside.spent)
        if stop or not spec.has_room(rounds):
            outcome = Outcome.STOP if stop else Outcome.SPENT
            return Resolution(owner, outcome, word=STOP_WHEN, expression=shown(condition), detail=inside.saw(condition))
    refused = loops.refusal(tickets, owner)
    if refused is not None:
        return replace(refused, word=place(spec.item.name, refused.word))
    rows = Rows(evaluator, spec, names, f"repete.{word_of(spec)}")
    row, why = rows.row(rounds, names.item)
    if why is not None:
        return replace(why, ticket=owner)
    return [Grow(owner, rounds, 1, rounds + 1, [row], None if rounds else rows.template)]
