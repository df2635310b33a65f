"""The official cases of CEL: protobuf's text format, read as far as these files use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oraculo.expressions.values import instant, length

_TOKEN = re.compile(r"""\s+|\#[^\n]*|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([\w.+\-/]+)|([{}\[\]:<>,;])""", re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}

Message = dict[str, list[Any]]


@dataclass(frozen=True)
class Case:
    name: str
    source: str
    message: Message


class NotInProfileError(Exception):
    """A value that JSON has no place for."""


def cases(folder: Path, files: tuple[str, ...]) -> Iterator[Case]:
    for file in files:
        whole = _message(iter(_tokens((folder / f"{file}.textproto").read_text(encoding="utf-8"))), None)
        for section in whole["section"]:
            for test in section.get("test", ()):
                name = f"{file}/{section['name'][0]}/{test['name'][0]}"
                yield Case(name, test["expr"][0], test)


def value_of(message: Message) -> Any:
    """A cel.expr.Value as ours."""
    (kind, found), *_ = message.items()
    one = found[0]
    match kind:
        case "null_value":
            return None
        case "bool_value":
            return one == "true"
        case "int64_value":
            return int(one, 0)
        case "double_value":
            return float(one)
        case "string_value":
            return one
        case "list_value":
            return [value_of(item) for item in one.get("values", ())]
        case "map_value":
            return {_key(entry["key"][0]): value_of(entry["value"][0]) for entry in one.get("entries", ())}
        case "object_value":
            return _object(one)
    raise NotInProfileError(kind)


def _key(message: Message) -> str:
    key = value_of(message)
    if not isinstance(key, str):
        raise NotInProfileError("a key that is no text")
    return key


def _object(message: Message) -> Any:
    ((kind, found),) = message.items()
    fields = found[0]
    seconds, nanos = int(fields.get("seconds", ["0"])[0]), int(fields.get("nanos", ["0"])[0])
    if nanos % 1000:
        raise NotInProfileError("nanoseconds")
    if kind.endswith("google.protobuf.Duration"):
        return length(f"{seconds}s", 0) + length(f"{nanos // 1000}us", 0) if nanos else length(f"{seconds}s", 0)
    if kind.endswith("google.protobuf.Timestamp"):
        return instant("1970-01-01T00:00:00Z", 0) + length(f"{seconds}s", 0) + length(f"{nanos // 1000}us", 0)
    raise NotInProfileError(kind)


# -- text format -----------------------------------------------------------------------------------------------------


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        assert found is not None, text[position : position + 40]
        position = found.end()
        if found.lastindex is not None:
            yield found[0]


def _message(tokens: Iterator[str], end: str | None) -> Message:
    """Fields until `end`: name → its values in order."""
    found: Message = {}
    pushed: list[str] = []

    def take() -> str:
        return pushed.pop() if pushed else next(tokens, "")

    while (name := take()) not in ("", end):
        if name in ",;":
            continue
        if name == "[":
            name = take()
            assert take() == "]"
        sign = take()
        if sign == ":":
            sign = take()
        if sign in "{<":
            found.setdefault(name, []).append(_message(tokens, "}" if sign == "{" else ">"))
        elif sign == "[":
            while (item := take()) != "]":
                if item != ",":
                    found.setdefault(name, []).append(_message(tokens, "}") if item == "{" else _scalar(item))
        else:
            value = _scalar(sign)
            while (more := take())[:1] in ("'", '"') and more:
                value += _scalar(more)
            pushed.append(more)
            found.setdefault(name, []).append(value)
    return found


def _scalar(token: str) -> str:
    if token[:1] not in ("'", '"'):
        return token

    def meant(match: re.Match[bytes]) -> bytes:
        hexadecimal, short, long, octal, other = match.groups()
        if short or long:
            return chr(int(short or long, 16)).encode()
        if hexadecimal or octal:
            return bytes([int(hexadecimal, 16) if hexadecimal else int(octal, 8)])
        return _SIMPLE.get(other, other)

    return _ESCAPE.sub(meant, token[1:-1].encode()).decode("utf-8", "surrogateescape")
