"""JSON values inside a plan: what they may hold, and the texts with expressions in them. No recursion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeGuard

from oraculo.expressions.template import OPENING
from oraculo.plans.faults import FaultCode, Faults, Path, shown
from oraculo.plans.model import Json

VALUE_MAX_DEPTH = 56  # the whole body may have 64 levels
INT_MIN, INT_MAX = -(2**63), 2**64 - 1


def is_json(value: object, path: Path, faults: Faults) -> TypeGuard[Json]:
    """Whether JSON can hold the value within the limits of a request; what it cannot hold is added to `faults`."""
    before = faults.count
    stack: list[tuple[object, Path]] = [(value, path)]
    while stack:
        one, at = stack.pop()
        if isinstance(one, dict | list) and len(at) - len(path) >= VALUE_MAX_DEPTH:
            faults.add(path, FaultCode.TOO_MUCH, f"nested more than {VALUE_MAX_DEPTH} levels deep")
            return False
        match one:
            case dict():
                for key, inner in one.items():
                    if not isinstance(key, str) or _unwritable(key):
                        faults.add(at, FaultCode.WRONG_KIND, f"a key is a text, not {shown(key)}")
                    else:
                        stack.append((inner, (*at, key)))
            case list():
                stack.extend((inner, (*at, number)) for number, inner in enumerate(one))
            case _ if fault := _scalar_fault(one):
                faults.add(at, FaultCode.WRONG_KIND, fault)
    return faults.count == before


def _scalar_fault(value: object) -> str:
    match value:
        case None | bool():
            return ""
        case str():
            return "the text holds a character that JSON cannot carry" if _unwritable(value) else ""
        case int():
            return "" if INT_MIN <= value <= INT_MAX else "the number does not fit into 64 bits"
        case float():
            return "" if math.isfinite(value) else f"{value} is no number that JSON can hold"
        case _:
            return f"{shown(value)} cannot be written as JSON"


def _unwritable(text: str) -> bool:
    if text.isascii():
        return "\0" in text
    return "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)


def texts_in(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text with an expression or an escape in it, and where it is, in the order of the document."""
    stack: list[tuple[Json, Path]] = [(value, path)]
    while stack:
        one, at = stack.pop()
        if isinstance(one, str):
            if OPENING in one:
                yield at, one
        elif isinstance(one, dict):
            stack.extend((inner, (*at, key)) for key, inner in reversed(one.items()))
        elif isinstance(one, list):
            stack.extend((inner, (*at, number)) for number, inner in reversed(list(enumerate(one))))
