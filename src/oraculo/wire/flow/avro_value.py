"""Whether a value is what one of our schemas says, before it is written. A writer would take 1.5 for 1, and a text for
a list."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

Fault = Callable[[Any], str]  # a value → what is wrong with it and where; empty: nothing


def fault_of(schema: Any) -> Fault:
    """Of a schema as the shipped files have it: every type is written out in place."""
    if isinstance(schema, str):
        return _SIMPLE[schema]
    if isinstance(schema, list):
        return _union([fault_of(branch) for branch in schema])
    match schema["type"]:
        case "record":
            return _record(schema["name"], {field["name"]: fault_of(field["type"]) for field in schema["fields"]})
        case "enum":
            symbols = frozenset(schema["symbols"])
            return _unless(lambda value: isinstance(value, str) and value in symbols, ", ".join(schema["symbols"]))
        case "array":
            return _items(fault_of(schema["items"]))
        case _:
            return _values(fault_of(schema["values"]))


def _unless(fits: Callable[[Any], bool], wanted: str) -> Fault:
    return lambda value: "" if fits(value) else f" is {_shown(value)}; wanted: {wanted}"


_SIMPLE = {
    "null": _unless(lambda value: value is None, "null"),
    "boolean": _unless(lambda value: isinstance(value, bool), "boolean"),
    "int": _unless(lambda value: type(value) is int and -(2**31) <= value < 2**31, "int"),
    "long": _unless(lambda value: type(value) is int and -(2**63) <= value < 2**63, "long"),
    "double": _unless(lambda value: type(value) in (int, float) and isfinite(value), "double"),
    "string": _unless(lambda value: isinstance(value, str), "string"),
}


def _union(branches: list[Fault]) -> Fault:
    def fault(value: Any) -> str:
        said = ""
        for branch in branches:
            said = branch(value)
            if not said:
                return ""
        return said

    return fault


def _record(name: str, fields: dict[str, Fault]) -> Fault:
    def fault(value: Any) -> str:
        if not isinstance(value, dict):
            return f" is {_shown(value)}; wanted: {name}"
        for field, check in fields.items():
            if field not in value:
                return f".{field} is missing"
            said = check(value[field])
            if said:
                return f".{field}{said}"
        if len(value) > len(fields):
            return f".{next(key for key in value if key not in fields)} is no field of {name}"
        return ""

    return fault


def _items(check: Fault) -> Fault:
    def fault(value: Any) -> str:
        if not isinstance(value, list):
            return f" is {_shown(value)}; wanted: a list"
        for number, item in enumerate(value):
            said = check(item)
            if said:
                return f".{number}{said}"
        return ""

    return fault


def _values(check: Fault) -> Fault:
    def fault(value: Any) -> str:
        if not isinstance(value, dict):
            return f" is {_shown(value)}; wanted: a map"
        for key, item in value.items():
            said = check(item) if isinstance(key, str) else f" is no text: {_shown(key)}"
            if said:
                return f".{key}{said}"
        return ""

    return fault


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
