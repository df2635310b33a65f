"""`all`, `exists`, `exists_one`, `filter` and `map`: a variable is bound to each element in turn, two units a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oraculo.errors import ExpressionCostError, ExpressionError
from oraculo.expressions.values import Run, Value, a_kind, is_map

Code = Callable[[Run], Value]
StepCode = Callable[[Run, Value], Value]
ROUND_UNITS = 2


def _elements(value: Value, name: str, position: int) -> Sequence[Value]:
    if isinstance(value, list | tuple):
        return value
    if is_map(value):
        return list(value)
    raise ExpressionError(f"{name} is for lists and maps, not for {a_kind(value)}", position)


def _condition(value: Value, name: str, position: int) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"the condition of {name} is a bool, not {a_kind(value)}", position)
    return value


def _decisive(name: str, wanted: bool) -> Callable[[int, list[Code], int], StepCode]:
    """`exists` (wanted: true) and `all` (false), which pass over failures when another element decides."""

    def make(slot: int, codes: list[Code], position: int) -> StepCode:
        (condition,) = codes

        def decide(run: Run, value: Value) -> Value:
            failure: ExpressionError | None = None
            for item in _elements(value, name, position):
                run.charge(ROUND_UNITS, position)
                run.slots[slot] = item
                try:
                    found = _condition(condition(run), name, position)
                except ExpressionCostError:
                    raise
                except ExpressionError as error:
                    failure = failure or error
                    continue
                if found is wanted:
                    return wanted
            if failure is not None:
                raise failure
            return not wanted

        return decide

    return make


def _exists_one(slot: int, codes: list[Code], position: int) -> StepCode:
    (condition,) = codes

    def count(run: Run, value: Value) -> Value:
        found = 0
        for item in _elements(value, "exists_one", position):
            run.charge(ROUND_UNITS, position)
            run.slots[slot] = item
            found += _condition(condition(run), "exists_one", position)
        return found == 1

    return count


def _filter(slot: int, codes: list[Code], position: int) -> StepCode:
    (condition,) = codes

    def keep(run: Run, value: Value) -> Value:
        kept = []
        for item in _elements(value, "filter", position):
            run.charge(ROUND_UNITS, position)
            run.slots[slot] = item
            if _condition(condition(run), "filter", position):
                run.charge(1, position)
                kept.append(item)
        return kept

    return keep


def _map_each(slot: int, codes: list[Code], position: int) -> StepCode:
    *conditions, change = codes

    def each(run: Run, value: Value) -> Value:
        made = []
        for item in _elements(value, "map", position):
            run.charge(ROUND_UNITS, position)
            run.slots[slot] = item
            if all(_condition(condition(run), "map", position) for condition in conditions):
                run.charge(1, position)
                made.append(change(run))
        return made

    return each


MACRO_CODE: dict[str, Callable[[int, list[Code], int], StepCode]] = {
    "all": _decisive("all", False),
    "exists": _decisive("exists", True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map_each,
}
