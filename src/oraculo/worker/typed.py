"""Parameters of functions by their type hints: the JSON Schema that they give, and the values that the function gets.

A function whose `params` is hinted as a pydantic model, a dataclass, a TypedDict or anything else that says more than
`dict` has typed parameters. They are checked with pydantic, which such hints need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from oraculo.errors import WorkError

PARAMETER_NAMES = ("params", "parametros")
INVALID_PARAMETERS = "parametros_invalidos"
FAULTS_SHOWN = 5
_UNTYPED = (dict, Mapping, MutableMapping, Any, object)


@dataclass(frozen=True, slots=True)
class TypedParameters:
    """`schema` is what the parameters have to be; `read` makes the value that the function gets."""

    schema: dict[str, Any]
    read: Callable[[Any], Any]


def typed_parameters(function: Callable[..., Any]) -> TypedParameters | None:
    """The typed parameters of a function; None when its hints say no more than that they are an object. Raises
    TypeError for a hint that needs pydantic where it is not installed."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):
        return None  # a name that is known to type checkers only
    hint = next((hints[name] for name in PARAMETER_NAMES if name in hints), None)
    if hint is None or _says_nothing(hint):
        return None
    try:
        from pydantic import PydanticUserError, TypeAdapter, ValidationError
    except ImportError:
        if is_typeddict(hint) or not is_dataclass(hint):
            return None  # they are plain objects to the function
        called = getattr(function, "__name__", repr(function))
        raise TypeError(f"the parameters of {called} are {hint}; reading them needs pydantic") from None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        schema = adapter.json_schema()
    except PydanticUserError:
        return None  # a type that has no schema; the function gets its parameters as they come

    def read(parameters: Any) -> Any:
        try:
            return adapter.validate_python(parameters)
        except ValidationError as error:
            told = [f"{'.'.join(map(str, ('parametros', *one['loc'])))}: {one['msg']}" for one in error.errors()]
            raise WorkError("; ".join(told[:FAULTS_SHOWN]), codigo=INVALID_PARAMETERS, definitivo=True) from None

    return TypedParameters(schema, read)


def _says_nothing(hint: Any) -> bool:
    origin = get_origin(hint) or hint
    return origin in _UNTYPED and (not get_args(hint) or get_args(hint)[-1] in _UNTYPED)


def plain(value: Any) -> Any:
    """What a function returned: a pydantic model as the object that it stands for, anything else as it is."""
    dump = getattr(type(value), "model_dump", None)
    return value if dump is None else dump(value, mode="json")
