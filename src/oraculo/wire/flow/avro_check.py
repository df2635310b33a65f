"""Whether bytes are what a schema says, found out before anything is made of them.

A decoder believes what it reads: a length, a number of items, a place in a list of symbols. Here each is held against
the bytes that are really there, so that what comes after can neither be led astray nor be made to fill the memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from oraculo.errors import WireError

Check = Callable[[bytes, int], int]  # the bytes and where to begin → where it ends

MAX_DEPTH = 64
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


def check_of(schema: Any) -> Check:
    """Of a schema as JSON has it. WireError for one that is none, or that contains itself."""
    return _Compiler().compile(schema, "", 0)


def whole(check: Check, body: bytes) -> None:
    """WireError unless the bytes are exactly one value."""
    end = check(body, 0)
    if end < len(body):
        raise WireError("trailing_bytes", f"{len(body) - end} bytes follow the record, which ends at byte {end}")


class _Compiler:
    def __init__(self) -> None:
        self._named: dict[str, Check] = {}
        self._open: set[str] = set()

    def compile(self, schema: Any, namespace: str, depth: int) -> Check:
        if depth > MAX_DEPTH:
            raise _no_schema(f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(schema, list):
            return _union([self.compile(one, namespace, depth + 1) for one in schema])
        if isinstance(schema, str):
            return _SIMPLE[schema] if schema in _PRIMITIVES else self._known(schema, namespace)
        if not isinstance(schema, dict):
            raise _no_schema("a type is a name, a list or an object")
        kind = schema.get("type")
        if not isinstance(kind, str):
            return self.compile(kind, namespace, depth + 1)
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, depth)
            case "enum":
                symbols = schema.get("symbols")
                if not isinstance(symbols, list):
                    raise _no_schema("an enum needs symbols")
                return self._name(schema, namespace, _enum(len(symbols)))
            case "fixed":
                size = schema.get("size")
                if type(size) is not int or size < 0:
                    raise _no_schema("a fixed needs a size")
                return self._name(schema, namespace, _fixed(size))
            case "array":
                return _blocks(self.compile(schema.get("items"), namespace, depth + 1))
            case "map":
                return _blocks(_pair(self.compile(schema.get("values"), namespace, depth + 1)))
            case _:
                return self.compile(kind, namespace, depth + 1)

    def _record(self, schema: Mapping[str, Any], namespace: str, depth: int) -> Check:
        name = _full_name(schema, namespace)
        self._open.add(name)
        inner = name.rpartition(".")[0]
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
            raise _no_schema("a record needs fields")
        check = _sequence([self.compile(field.get("type"), inner, depth + 1) for field in fields])
        self._open.discard(name)
        self._named[name] = check
        return check

    def _name(self, schema: Mapping[str, Any], namespace: str, check: Check) -> Check:
        self._named[_full_name(schema, namespace)] = check
        return check

    def _known(self, name: str, namespace: str) -> Check:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for one in (full, name):
            if one in self._named:
                return self._named[one]
            if one in self._open:
                raise _no_schema(f"{one} contains itself, which is not supported")
        raise _no_schema(f"{name} is not defined")


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str):
        raise _no_schema("a named type without a name")
    space = schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _no_schema(detail: str) -> WireError:
    return WireError("invalid_schema", f"the writer's schema cannot be used: {detail}")


def _invalid(at: int, detail: str) -> WireError:
    return WireError("invalid_avro", f"at byte {at}: {detail}")


def _truncated(at: int) -> WireError:
    return WireError("truncated_avro", f"the bytes end inside a value that begins at byte {at}")


def _long(body: bytes, at: int) -> tuple[int, int]:
    """A zig-zag number and where it ends."""
    number, shift, here = 0, 0, at
    while True:
        if here >= len(body):
            raise _truncated(at)
        byte = body[here]
        here += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise _invalid(at, "a number of more than 64 bits")
    if number >= 1 << 64:
        raise _invalid(at, "a number of more than 64 bits")
    return (number >> 1) ^ -(number & 1), here


def _null(_body: bytes, at: int) -> int:
    return at


def _boolean(body: bytes, at: int) -> int:
    if at >= len(body):
        raise _truncated(at)
    if body[at] > 1:
        raise _invalid(at, f"{body[at]} is no boolean")
    return at + 1


def _int(body: bytes, at: int) -> int:
    number, end = _long(body, at)
    if not -(2**31) <= number < 2**31:
        raise _invalid(at, f"{number} does not fit into 32 bits")
    return end


def _float(form: str) -> Check:
    size = struct.calcsize(form)
    read = struct.Struct(form).unpack_from

    def check(body: bytes, at: int) -> int:
        if at + size > len(body):
            raise _truncated(at)
        if not isfinite(read(body, at)[0]):
            raise _invalid(at, "a number that is not finite")
        return at + size

    return check


def _span(body: bytes, at: int) -> tuple[int, int]:
    """Where the bytes begin whose number stands here, and where they end."""
    size, start = _long(body, at)
    if size < 0:
        raise _invalid(at, f"a length of {size}")
    if start + size > len(body):
        raise _truncated(at)
    return start, start + size


def _string(body: bytes, at: int) -> int:
    start, end = _span(body, at)
    text = body[start:end]
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise _invalid(start + error.start, "not UTF-8") from None
    if 0 in text:
        raise WireError("nul", f"at byte {start}: the character U+0000 is not allowed in any string")
    return end


_SIMPLE: dict[str, Check] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": lambda body, at: _long(body, at)[1],
    "float": _float("<f"),
    "double": _float("<d"),
    "bytes": lambda body, at: _span(body, at)[1],
    "string": _string,
}


def _enum(count: int) -> Check:
    def check(body: bytes, at: int) -> int:
        index, end = _long(body, at)
        if not 0 <= index < count:
            raise _invalid(at, f"symbol number {index} of {count}")
        return end

    return check


def _fixed(size: int) -> Check:
    def check(body: bytes, at: int) -> int:
        if at + size > len(body):
            raise _truncated(at)
        return at + size

    return check


def _union(branches: list[Check]) -> Check:
    def check(body: bytes, at: int) -> int:
        index, end = _long(body, at)
        if not 0 <= index < len(branches):
            raise _invalid(at, f"branch number {index} of {len(branches)}")
        return branches[index](body, end)

    return check


def _sequence(fields: list[Check]) -> Check:
    def check(body: bytes, at: int) -> int:
        for field in fields:
            at = field(body, at)
        return at

    return check


def _pair(value: Check) -> Check:
    return _sequence([_string, value])


def _blocks(item: Check) -> Check:
    """Of an array or a map: blocks of items until an empty one. No item may take up nothing, or a few bytes could stand
    for any number of them."""

    def check(body: bytes, at: int) -> int:
        while True:
            count, here = _long(body, at)
            if count == 0:
                return here
            size = None
            if count < 0:
                size, here = _long(body, here)
                count = -count
            if count > len(body) - here:
                raise _truncated(at)
            begin = here
            for _ in range(count):
                end = item(body, here)
                if end == here:
                    raise _invalid(here, "an item of no bytes")
                here = end
            if size is not None and here - begin != size:
                raise _invalid(at, f"a block of {here - begin} bytes says that it has {size}")
            at = here

    return check
