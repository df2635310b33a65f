"""Checks the parameters of a request against the JSON Schema that a worker declared for them.

The keywords are those that type hints give: types, fields, items, choices, bounds and references inside of the schema;
others say nothing here. A text with an expression in it is not known yet and fits everything: its worker checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oraculo.errors import WireError
from oraculo.expressions.template import OPENING
from oraculo.wire import strict_json

SCHEMA_MAX_BYTES = 64 * 1024
CHECK_MAX_STEPS = 20_000  # of one check; what is larger is left to the worker
CHECK_MAX_LEVELS = 64
FAULTS_MAX = 10
VALUE_SHOWN_CHARS = 60

_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == int(value),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "at least", lambda value, bound: value >= bound),
    ("maximum", "at most", lambda value, bound: value <= bound),
    ("exclusiveMinimum", "above", lambda value, bound: value > bound),
    ("exclusiveMaximum", "below", lambda value, bound: value < bound),
)
_SIZES = (("minLength", "maxLength", str, "characters"), ("minItems", "maxItems", list, "items"))


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """`path` is where it stands inside of the parameters; empty for the parameters themselves."""

    path: str
    message: str


class _TooLongError(Exception):
    """The check takes more steps than it may."""


def checked(schema: Any) -> dict[str, Any]:
    """The schema, when it can be used. WireError says what is wrong with it."""
    if not isinstance(schema, dict):
        raise WireError("invalid_field", "parametros: a JSON Schema is an object here")
    size = len(strict_json.compact(schema))
    if size > SCHEMA_MAX_BYTES:
        raise WireError("invalid_field", f"parametros: a schema has at most {SCHEMA_MAX_BYTES} bytes, this one {size}")
    for reference in _references(schema):
        if _found(schema, reference) is None:
            raise WireError("invalid_field", f"parametros: {reference[:80]!r} refers to nothing inside of the schema")
    return schema


def faults(schema: Mapping[str, Any], parameters: Any) -> list[SchemaFault]:
    """What is wrong with the parameters; at most so many faults. Empty when they fit, or cannot be told yet."""
    try:
        return _Check(schema).of(schema, parameters, "", 0)[:FAULTS_MAX]
    except _TooLongError:
        return []


class _Check:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._steps = 0

    def of(self, schema: Any, value: Any, path: str, level: int) -> list[SchemaFault]:
        self._steps += 1
        if self._steps > CHECK_MAX_STEPS or level > CHECK_MAX_LEVELS:
            raise _TooLongError
        if schema is False:
            return [SchemaFault(path, "nothing is allowed here")]
        if not isinstance(schema, dict) or (isinstance(value, str) and OPENING in value):
            return []
        found = [*self._kind(schema, value, path)]
        if found:
            return found
        if isinstance(reference := schema.get("$ref"), str):
            found += self.of(_found(self._root, reference), value, path, level + 1)
        for inner in schema.get("allOf", ()):
            found += self.of(inner, value, path, level + 1)
        found += self._choice(schema, value, path, level)
        if isinstance(value, dict):
            found += self._fields(schema, value, path, level)
        elif isinstance(value, list):
            found += self._items(schema, value, path, level)
        return found

    @staticmethod
    def _kind(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[SchemaFault]:
        said = schema.get("type")
        kinds = said if isinstance(said, list) else [] if said is None else [said]
        if kinds and not any(_KINDS[kind](value) for kind in kinds if kind in _KINDS):
            yield SchemaFault(path, f"{' or '.join(map(str, kinds))} is expected, not {_shown(value)}")
            return
        if "const" in schema and not _same(value, schema["const"]):
            yield SchemaFault(path, f"{_shown(schema['const'])} is expected, not {_shown(value)}")
        if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
            allowed = ", ".join(map(_shown, schema["enum"]))
            yield SchemaFault(path, f"{_shown(value)} is none of {allowed}")
        if _KINDS["number"](value):
            for word, told, fits in _BOUNDS:
                if isinstance(bound := schema.get(word), int | float) and not fits(value, bound):
                    yield SchemaFault(path, f"{told} {bound} is expected, not {_shown(value)}")
        for least, most, kind, what in _SIZES:
            if isinstance(value, kind):
                low, high = schema.get(least, 0), schema.get(most)
                if len(value) < low or (high is not None and len(value) > high):
                    upto = "" if high is None else f" and at most {high}"
                    yield SchemaFault(path, f"at least {low}{upto} {what} are expected, there are {len(value)}")

    def _choice(self, schema: Mapping[str, Any], value: Any, path: str, level: int) -> list[SchemaFault]:
        choices = schema.get("anyOf") or schema.get("oneOf")
        if not choices:
            return []
        tried = [self.of(one, value, path, level + 1) for one in choices]
        if not all(tried):
            return []
        deep = [some for some in tried if any(one.path != path for one in some)]
        if len(deep) == 1:
            return deep[0]  # the only one that is of the same kind
        return [SchemaFault(path, "; or ".join(dict.fromkeys(some[0].message for some in tried)))]

    def _fields(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, level: int) -> list[SchemaFault]:
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        found = [
            SchemaFault(_below(path, name), "is missing") for name in schema.get("required", ()) if name not in value
        ]
        for name, inner in value.items():
            if name in known:
                found += self.of(known[name], inner, _below(path, name), level + 1)
            elif others is False:
                allowed = ", ".join(known) or "none"
                found.append(SchemaFault(_below(path, name), f"there is no such parameter; allowed: {allowed}"))
            else:
                found += self.of(others, inner, _below(path, name), level + 1)
        return found

    def _items(self, schema: Mapping[str, Any], value: list[Any], path: str, level: int) -> list[SchemaFault]:
        first, rest = schema.get("prefixItems", ()), schema.get("items", True)
        found: list[SchemaFault] = []
        for number, inner in enumerate(value):
            one = first[number] if number < len(first) else rest
            found += self.of(one, inner, _below(path, str(number)), level + 1)
        return found


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _shown(value: Any) -> str:
    return strict_json.dumps(value).decode()[:VALUE_SHOWN_CHARS]


def _references(schema: Any) -> Iterator[str]:
    stack = [schema]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if isinstance(reference := one.get("$ref"), str):
                yield reference
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)


def _found(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference inside of the schema means; None when there is nothing."""
    if not reference.startswith("#"):
        return None
    at: Any = root
    for step in reference[1:].lstrip("/").split("/") if reference != "#" else ():
        at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at
