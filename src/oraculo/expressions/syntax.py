"""What the parser makes: a small tree. Chains (`a + b - c`, `x.y[0].z()`) are flat, so that long ones are not deep."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str | None
    position: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[tuple[Node, Node], ...]
    position: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function by its name: `size(x)`, `math.least(a, b)`."""

    name: str
    arguments: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Has:
    """`has(x.y)`: whether the map has the field."""

    inner: Node
    field: str
    field_position: int
    position: int


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Index:
    index: Node
    position: int


@dataclass(frozen=True, slots=True)
class Method:
    """`x.contains(y)`."""

    name: str
    arguments: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Macro:
    """`list.filter(x, condition)`; `variable` is bound to each element in turn."""

    name: str
    variable: str
    arguments: tuple[Node, ...]
    position: int


Step = Field | Index | Method | Macro


@dataclass(frozen=True, slots=True)
class Member:
    """`root` and what is asked of it, one after the other."""

    root: Node
    steps: tuple[Step, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`!` or `-`, `count` times."""

    sign: str
    count: int
    operand: Node
    position: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one precedence, from left to right."""

    first: Node
    rest: tuple[tuple[str, Node, int], ...]
    position: int


@dataclass(frozen=True, slots=True)
class Logic:
    """`||` or `&&` over two or more."""

    sign: str
    operands: tuple[Node, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Node
    yes: Node
    no: Node
    position: int


Node = Literal | Name | ListOf | MapOf | Call | Has | Member | Unary | Chain | Logic | Conditional
