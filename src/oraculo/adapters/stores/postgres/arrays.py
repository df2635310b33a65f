"""Columns as parameters: the rows of a table travel as one array per column, in PostgreSQL's binary form.

So a batch is a constant number of statements whatever its size, nothing has to be quoted, and the type of a parameter
does not depend on the values in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NULL = b"\xff\xff\xff\xff"
_length = struct.Struct(">i").pack
_number = struct.Struct(">iq").pack


class Numbers:
    """bigint[]"""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[int | None]) -> None:
        self.values = list(values)


class Texts:
    """text[]; bytes are taken as UTF-8."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[str | bytes | None]) -> None:
        self.values = list(values)


class Blobs:
    """bytea[]"""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[bytes]) -> None:
        self.values = list(values)


class _NumbersDumper(Dumper):
    format = Format.BINARY
    oid = 1016

    def dump(self, obj: Numbers) -> Buffer:
        return _array(20, obj.values, [_NULL if one is None else _number(8, one) for one in obj.values])


class _TextsDumper(Dumper):
    format = Format.BINARY
    oid = 1009

    def dump(self, obj: Texts) -> Buffer:
        encoded = [one.encode() if isinstance(one, str) else one for one in obj.values]
        return _array(25, obj.values, [_NULL if one is None else _length(len(one)) + one for one in encoded])


class _BlobsDumper(Dumper):
    format = Format.BINARY
    oid = 1001

    def dump(self, obj: Blobs) -> Buffer:
        return _array(17, obj.values, [_length(len(one)) + one for one in obj.values])


def _array(oid: int, values: list[Any], parts: list[bytes]) -> bytes:
    if not parts:
        return struct.pack(">iiI", 0, 0, oid)
    return struct.pack(">iiIii", 1, 1 if None in values else 0, oid, len(parts), 1) + b"".join(parts)


def register(connection: AsyncConnection[Any]) -> None:
    for kind, dumper in ((Numbers, _NumbersDumper), (Texts, _TextsDumper), (Blobs, _BlobsDumper)):
        connection.adapters.register_dumper(kind, dumper)


def storable(text: str) -> bool:
    """PostgreSQL has no NUL in a text, and a lone surrogate is no text at all: nothing can be stored under it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
