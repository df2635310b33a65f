"""JSON text → events. As strict as the API: what is accepted here is accepted there, and the other way round."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from oraculo.plans.faults import FaultCode
from oraculo.plans.json_values import INT_MAX, INT_MIN
from oraculo.plans.source.events import Part, Quoting, SourceEvent, SourceText

_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?))(?![0-9A-Za-z.+-])"
    r"|(?P<word>true|false|null)(?![0-9A-Za-z_])"
    r"|(?P<sign>[\[\]{}:,])"
)
_WORDS = {"true": True, "false": False, "null": None}
_INT_MAX_CHARS = 20
_SURROGATE = re.compile("[\ud800-\udfff]")
# What may stand next, by the state that the last token left behind.
_VALUE, _FIRST_VALUE, _KEY, _FIRST_KEY, _COLON, _COMMA = range(6)
_WANTED = {
    _VALUE: "a value",
    _FIRST_VALUE: "a value or ]",
    _KEY: "a key in double quotes",
    _FIRST_KEY: "a key in double quotes or }",
    _COLON: ":",
}


def json_events(source: SourceText) -> Iterator[SourceEvent]:
    """The parts of the text; ends early, with a fault, where it is no JSON."""
    text = source.text
    closers: list[str] = []
    state = _VALUE
    position = _skip(text, 0)
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            source.add(position, FaultCode.SYNTAX, f"not JSON: {_shown(text, position)} cannot stand here")
            return
        sign = found["sign"]
        if not _fits(state, found, closers):
            wanted = _wanted(state, closers)
            source.add(position, FaultCode.SYNTAX, f"not JSON: {wanted} is expected, not {_shown(text, position)}")
            return
        match sign:
            case "{" | "[":
                yield SourceEvent(Part.OBJECT if sign == "{" else Part.LIST, position, found.end())
                closers.append("}" if sign == "{" else "]")
                state = _FIRST_KEY if sign == "{" else _FIRST_VALUE
            case "}" | "]":
                yield SourceEvent(Part.END, position, found.end())
                closers.pop()
                state = _COMMA
            case ":":
                state = _VALUE
            case ",":
                state = _KEY if closers[-1] == "}" else _VALUE
            case _:
                yield _scalar(found)
                state = _COLON if state in (_KEY, _FIRST_KEY) else _COMMA
        position = _skip(text, found.end())
    if closers or state != _COMMA:
        source.add(len(text), FaultCode.SYNTAX, f"not JSON: the text ends where {_wanted(state, closers)} is expected")


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _fits(state: int, found: re.Match[str], closers: list[str]) -> bool:
    sign = found["sign"]
    if state in (_VALUE, _FIRST_VALUE):
        return sign in (None, "{", "[") or (state == _FIRST_VALUE and sign == "]")
    if state in (_KEY, _FIRST_KEY):
        return found["text"] is not None or (state == _FIRST_KEY and sign == "}")
    if state == _COLON:
        return sign == ":"
    return bool(closers) and sign in (",", closers[-1])


def _wanted(state: int, closers: list[str]) -> str:
    if state == _COMMA:
        return f", or {closers[-1]}" if closers else "nothing more"
    return _WANTED[state]


def _shown(text: str, position: int) -> str:
    letter = text[position]
    return "a control character" if letter < " " else repr(letter)


def _scalar(found: re.Match[str]) -> SourceEvent:
    start, end, raw = found.start(), found.end(), found[0]
    if found["text"] is not None:
        value = json.loads(raw) if "\\" in raw else raw[1:-1]
        fault = None
        if "\\" in raw and ("\0" in value or _SURROGATE.search(value)):
            fault = (FaultCode.WRONG_KIND, "the text holds a character that JSON cannot carry")
        return SourceEvent(Part.SCALAR, start, end, value, value, Quoting.ESCAPES, fault)
    if found["word"] is not None:
        return SourceEvent(Part.SCALAR, start, end, _WORDS[raw], raw)
    value, fault = number(raw, whole=not found["fraction"])
    return SourceEvent(Part.SCALAR, start, end, value, raw, fault=fault)


def number(raw: str, *, whole: bool) -> tuple[int | float, tuple[FaultCode, str] | None]:
    """A number that JSON can hold, or why it cannot."""
    if whole:
        value = int(raw) if len(raw) <= _INT_MAX_CHARS else INT_MAX + 1
        if INT_MIN <= value <= INT_MAX:
            return value, None
        return 0, (FaultCode.WRONG_KIND, "the number does not fit into 64 bits")
    real = float(raw)
    if math.isfinite(real):
        return real, None
    return 0, (FaultCode.WRONG_KIND, "the number is too large")
