"""Columns as parameters: the rows of a table travel as one array per column, in PostgreSQL's binary form.

So a batch is a constant number of statements whatever its size, nothing has to be quoted, and the type of a parameter
does not depend on the values in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NULL = b"\xff\xff\xff\xff"
_length = struct.Struct(">i").pack
_number = struct.Struct(">iq").pack


class Array:
    """`data` is what goes over the wire."""

    __slots__ = ("data",)
    oid = 0

    def __init__(self, element: int, parts: Sequence[bytes]) -> None:
        nulls = 1 if _NULL in parts else 0
        head = struct.pack(">iiIii", 1, nulls, element, len(parts), 1) if parts else struct.pack(">iiI", 0, 0, element)
        self.data = head + b"".join(parts)


class Numbers(Array):
    """bigint[]"""

    __slots__ = ()
    oid = 1016

    def __init__(self, values: Iterable[int | None]) -> None:
        super().__init__(20, [_NULL if one is None else _number(8, one) for one in values])


class Texts(Array):
    """text[]; bytes are taken as UTF-8."""

    __slots__ = ()
    oid = 1009

    def __init__(self, values: Iterable[str | bytes | None]) -> None:
        encoded = [one.encode() if isinstance(one, str) else one for one in values]
        super().__init__(25, [_NULL if one is None else _length(len(one)) + one for one in encoded])


class Blobs(Array):
    """bytea[]"""

    __slots__ = ()
    oid = 1001

    def __init__(self, values: Iterable[bytes | None]) -> None:
        super().__init__(17, [_NULL if one is None else _length(len(one)) + one for one in values])


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> Buffer:
        return obj.data


def register(connection: AsyncConnection[Any]) -> None:
    for kind in (Numbers, Texts, Blobs):
        dumper = type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": kind.oid})
        connection.adapters.register_dumper(kind, dumper)


def storable(text: str) -> bool:
    """PostgreSQL has no NUL in a text, and a lone surrogate is no text at all: nothing can be stored under it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
