"""Checks the parameters of a request against the JSON Schema that a worker declared for them.

The keywords are those that type hints give: types, fields, items, choices, bounds and references inside of the schema;
others say nothing here. A text with an expression in it is not known yet and fits everything: its worker checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
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
    _check_shapes(schema)
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
        self._count(1, level)
        if schema is False:
            return [SchemaFault(path, "nothing is allowed here")]
        if not isinstance(schema, dict) or (isinstance(value, str) and OPENING in value):
            return []
        self._count(len(schema.get("enum", ())) + len(schema.get("required", ())), level)
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

    def _count(self, steps: int, level: int = 0) -> None:
        self._steps += steps
        if self._steps > CHECK_MAX_STEPS or level > CHECK_MAX_LEVELS:
            raise _TooLongError

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
                self._count(len(known))
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
    return strict_json.dumps(_beginning(value)).decode()[:VALUE_SHOWN_CHARS]


def _beginning(value: Any, levels: int = 4) -> Any:
    """As much of a value as is shown at most: each part of it has a letter or more."""
    if isinstance(value, str):
        return value[:VALUE_SHOWN_CHARS]
    few = VALUE_SHOWN_CHARS // 4 if levels == 4 else 4
    if isinstance(value, list):
        return [_beginning(one, levels - 1) for one in value[:few]] if levels else []
    if isinstance(value, dict):
        return {
            name[:VALUE_SHOWN_CHARS]: _beginning(value[name], levels - 1)
            for name in islice(value, few if levels else 0)
        }
    return value


# -- what a schema may be ----------------------------------------------------------------------------------------------


def _check_shapes(root: dict[str, Any]) -> None:
    """Raise WireError unless every keyword that is looked at has a value of the right shape, in all schemas inside."""
    waiting: list[tuple[str, Any]] = [("", root)]
    seen: set[int] = set()
    while waiting:
        path, schema = waiting.pop()
        if isinstance(schema, bool) or id(schema) in seen:
            continue
        if not isinstance(schema, dict):
            raise _misshapen(path, "a schema is an object, true or false")
        seen.add(id(schema))
        for word, (fits, told) in _SHAPES.items():
            if word in schema and not fits(schema[word]):
                raise _misshapen(f"{path}/{word}", told)
        for word in ("items", "additionalProperties"):
            if word in schema:
                waiting.append((f"{path}/{word}", schema[word]))
        for word in ("allOf", "anyOf", "oneOf", "prefixItems"):
            waiting += [(f"{path}/{word}/{number}", one) for number, one in enumerate(schema.get(word, ()))]
        for word in ("properties", "$defs", "definitions"):
            waiting += [(f"{path}/{word}/{name}", one) for name, one in schema.get(word, {}).items()]
        if "$ref" in schema:
            reference = schema["$ref"]
            target = _found(root, reference)
            if target is None:
                raise _misshapen(path, f"{reference[:80]!r} refers to nothing inside of the schema")
            waiting.append((reference, target))


def _is_kinds(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_LIST = (lambda value: isinstance(value, list), "a list is needed")
_FIELDS = (lambda value: isinstance(value, dict), "an object is needed")
_COUNT = (_is_count, "a number of 0 or more is needed")
_SHAPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_kinds, "the name of a type is needed, or a list of them"),
    "$ref": (lambda value: isinstance(value, str), "a text is needed"),
    "required": (_is_names, "a list of names is needed"),
    **dict.fromkeys(("enum", "allOf", "anyOf", "oneOf", "prefixItems"), _LIST),
    **dict.fromkeys(("properties", "$defs", "definitions"), _FIELDS),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
}


def _misshapen(path: str, told: str) -> WireError:
    return WireError("invalid_field", f"parametros: {path[:200] or 'the schema'}: {told}")


def _found(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference inside of the schema means; None when there is nothing."""
    if not reference.startswith("#"):
        return None
    at: Any = root
    for step in reference[1:].lstrip("/").split("/") if reference != "#" else ():
        at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at
