"""JSON with strict limits: what is not acceptable is refused before it can do harm or be lost on the way.

Refused: more than 1 MiB, nesting above 64, more than 100,000 lists and objects or as many members, NaN and infinities,
duplicate keys, NUL, lone surrogates, integers beyond 64 bits, anything that is not UTF-8, anything after the value.
Parsers disagree on most of these, which is how messages change meaning between two systems; refusing them keeps one
meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jiter
import orjson

from oraculo.errors import WireError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_CONTAINERS = 100_000  # lists and objects, each a quarter of a microsecond and 60 bytes
MAX_MEMBERS = 100_000  # of all objects together; telling keys apart costs most of a microsecond each

# Every digit as 0 and every E as e: what could be a number out of range then shows as one of three fixed texts.
_SHAPE = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x65 if byte == 0x45 else byte for byte in range(256))
_LONG, _LARGE, _LARGE_PLUS = b"0" * 19, b"0e000", b"0e+000"
_CONTAINERS = (dict, list)
_ESCAPED_NUL = b"\\u0000"
_DUMP_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def loads(raw: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """The value in `raw`, or WireError with a stable code."""
    if len(raw) > max_bytes:
        raise WireError("too_large", f"{len(raw)} bytes; at most {max_bytes} are allowed")
    containers = raw.count(b"[") + raw.count(b"{")
    if containers > MAX_CONTAINERS or (len(raw) > MAX_MEMBERS and raw.count(b":") > MAX_MEMBERS):
        _check_parts(raw)
    try:
        value = jiter.from_json(raw, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise _refusal(str(error)) from None
    if b"\\" in raw and _ESCAPED_NUL in raw and _has_nul(value):
        raise WireError("nul", "the character U+0000 is not allowed in any string")
    if containers > MAX_DEPTH and _is_deep(value):
        raise WireError("too_deep", f"nested more than {MAX_DEPTH} levels deep")
    shape = raw.translate(_SHAPE)
    if _LONG in shape or _LARGE in shape or (b"+" in shape and _LARGE_PLUS in shape):
        _check_numbers(value, raw)
    return value


def loads_trusted(raw: bytes) -> Any:
    """For bytes that came through `loads` before, or that we wrote: no limits but the parser's own."""
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise WireError("not_json", f"not JSON: {error}") from None


def _refusal(detail: str) -> WireError:
    if "duplicate key" in detail:
        return WireError("duplicate_key", detail)
    if "recursion limit" in detail:
        return WireError("too_deep", f"nested more than {MAX_DEPTH} levels deep")
    if "unicode" in detail or "hex escape" in detail or "surrogate" in detail:
        return WireError("invalid_unicode", f"not valid UTF-8 text: {detail}")
    if "out of range" in detail:
        return WireError("number_out_of_range", detail)
    return WireError("not_json", f"not JSON: {detail}")


def _walk(value: Any) -> Iterator[Any]:
    """Every scalar and key; without recursion."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield from item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        else:
            yield item


def _has_nul(value: Any) -> bool:
    return any(isinstance(item, str) and "\0" in item for item in _walk(value))


def _check_parts(raw: bytes) -> None:
    """WireError when there are too many, not counting what looks like one inside of texts."""
    unescaped = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    outside = b"".join(unescaped.split(b'"')[::2])
    if outside.count(b"[") + outside.count(b"{") > MAX_CONTAINERS:
        raise WireError("too_complex", f"more than {MAX_CONTAINERS} lists and objects")
    if outside.count(b":") > MAX_MEMBERS:
        raise WireError("too_complex", f"more than {MAX_MEMBERS} members of objects")


def _is_deep(value: Any) -> bool:
    """Level by level, so that what is wide costs one look at each value."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            for child in (item.values() if type(item) is dict else item if type(item) is list else ())
            if type(child) in _CONTAINERS
        ]
        if not level:
            return False
    return True


def _check_numbers(value: Any, raw: bytes) -> None:
    """Integers of more than 64 bits, and numbers that no double can hold. Ids with digits land here too: be quick."""
    try:
        orjson.loads(raw)
    except ValueError:
        raise WireError("number_out_of_range", "a number is too large for a double") from None
    if _LONG in raw.translate(_SHAPE):
        for item in _walk(value):
            if type(item) is int and not -(2**63) <= item < 2**64:
                raise WireError("number_out_of_range", f"integer {str(item)[:30]}… does not fit into 64 bits")


def _default(value: Any) -> Any:
    if isinstance(value, bytes):
        return orjson.Fragment(value)  # JSON text already
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def dumps(value: Any) -> bytes:
    """Compact JSON. `bytes` inside are taken for JSON text and spliced in as they are."""
    return orjson.dumps(value, _default, _DUMP_OPTIONS)


def compact(value: Any) -> bytes:
    """Like `dumps`, for bytes that are kept: the encoder's own take up a whole 4 KiB buffer as long as they live."""
    return memoryview(orjson.dumps(value, _default, _DUMP_OPTIONS)).tobytes()


def canonical(value: Any) -> bytes:
    """The same bytes for the same value, whatever the order of its keys."""
    return orjson.dumps(value, _default, _DUMP_OPTIONS | orjson.OPT_SORT_KEYS)
