"""Functions of lists and numbers."""

from __future__ import annotations

from typing import Any

from oraculo.errors import ExpressionError
from oraculo.expressions.functions.registry import function, list_of, method, whole_of
from oraculo.expressions.values import Run, Value, before, checked_int, equal, is_number, kind_of

FLATTEN_MAX_DEPTH = 64


@method("sum", 1)
def _sum(run: Run, position: int, given: tuple[Value, ...]) -> Value:
    items = list_of("sum", given[0], given, position)
    run.charge(len(items), position)
    total: Any = items[0] if items else 0
    kinds = {kind_of(item) for item in items}
    if len(kinds) > 1 or not kinds <= {"int", "double", "duration"}:
        raise ExpressionError(
            f"sum: the list holds {', '.join(sorted(kinds))}; numbers of one type are needed", position
        )
    for item in items[1:]:
        total += item
    return checked_int(total, position) if isinstance(total, int) else total


@method("distinct", 1)
def _distinct(run: Run, position: int, given: tuple[Value, ...]) -> list[Value]:
    """The first of equal ones is kept. Texts and numbers are found at once, other values by comparing."""
    items = list_of("distinct", given[0], given, position)
    run.charge(2 * len(items), position)
    seen: set[tuple[bool, Value]] = set()
    others: list[Value] = []
    kept: list[Value] = []
    for item in items:
        if isinstance(item, str | int | float):
            key = (isinstance(item, bool), item)
            if key in seen:
                continue
            seen.add(key)
        else:
            run.charge(len(others), position)
            if any(equal(item, other, run, position) for other in others):
                continue
            others.append(item)
        kept.append(item)
    return kept


@method("flatten", 1, 2)
def _flatten(run: Run, position: int, given: tuple[Value, ...]) -> list[Value]:
    items = list_of("flatten", given[0], given, position)
    depth = whole_of("flatten", given[1], given, position) if len(given) == 2 else 1
    if not 0 <= depth <= FLATTEN_MAX_DEPTH:
        raise ExpressionError(f"flatten: the depth is 0 to {FLATTEN_MAX_DEPTH}, not {depth}", position)
    for _ in range(depth):
        if not any(isinstance(item, list | tuple) for item in items):
            break
        flat: list[Value] = []
        for item in items:
            if isinstance(item, list | tuple):
                run.charge(1 + len(item), position)
                flat.extend(item)
            else:
                run.charge(1, position)
                flat.append(item)
        items = flat
    return items


def _extreme(name: str, sign: str) -> None:
    def made(run: Run, position: int, given: tuple[Value, ...]) -> Value:
        items = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
        if not items or not all(is_number(item) for item in items):
            raise ExpressionError(f"{name} is defined for one number or more", position)
        run.charge(len(items), position)
        found = items[0]
        for item in items[1:]:
            if before(item, found, sign, run, position):
                found = item
        return found

    function(name, *range(1, 65))(made)


_extreme("math.least", "<")
_extreme("math.greatest", ">")
