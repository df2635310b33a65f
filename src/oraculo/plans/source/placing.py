"""The path of a fault → the character that it is about."""

from __future__ import annotations

import re

from oraculo.plans.faults import Fault, FaultCode
from oraculo.plans.source.events import PlacedFault, Quoting, SourceText
from oraculo.plans.source.tree import SourceNode

# Faults that are about a key, or about an object as a whole.
_OF_KEYS = frozenset(
    {FaultCode.UNKNOWN_FIELD, FaultCode.TWICE, FaultCode.MISSING, FaultCode.CYCLE, FaultCode.AMBIGUOUS}
)
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_DOUBLED_QUOTE = re.compile("''")
_INDENT = re.compile(r"^( *)[^ \n]", re.MULTILINE)


def place(fault: Fault, source: SourceText, root: SourceNode) -> PlacedFault:
    """The fault where it stands: at its value, at its key, or at the nearest part of its path that is there."""
    node, reached = root, 0
    for step in fault.path:
        inner = node.inner.get(step)
        if inner is None:
            break
        node, reached = inner, reached + 1
    if fault.column is not None and reached == len(fault.path):
        raw = source.text[node.start : node.end]
        return source.at(fault, node.start + raw_offset(raw, fault.column, node.quoting))
    whole = bool(node.inner) or fault.code in _OF_KEYS or reached < len(fault.path)
    return source.at(fault, node.key_start if whole and node.key_start is not None else node.start)


def raw_offset(raw: str, offset: int, quoting: Quoting) -> int:
    """Where the character of a text stands in what was written for it; 0 where lines were folded."""
    match quoting:
        case Quoting.LITERAL:
            return _in_literal(raw, offset)
        case _ if "\n" in raw or quoting is Quoting.FOLDED:
            return 0
        case Quoting.ESCAPES:
            return _past(raw, offset, (_SURROGATE_PAIR, _ESCAPE))
        case Quoting.SINGLE:
            return _past(raw, offset, (_DOUBLED_QUOTE,))
        case _:
            return offset


def _past(raw: str, offset: int, units: tuple[re.Pattern[str], ...]) -> int:
    """Behind the opening quote and `offset` characters, some of which are written as several."""
    position = 1
    for _ in range(offset):
        found = next((match for unit in units if (match := unit.match(raw, position))), None)
        position = found.end() if found else position + 1
    return min(position, len(raw))


def _in_literal(raw: str, offset: int) -> int:
    """In a block after `|`: its lines are those of the text, each behind the same indent."""
    header, _, body = raw.partition("\n")
    if any(letter.isdigit() for letter in header.partition("#")[0]):
        return 0  # the indent is counted from the object around it
    found = _INDENT.search(body)
    indent = len(found[1]) if found else 0
    position = len(header) + 1
    for line in body.split("\n"):
        shown = max(len(line.removesuffix("\r")) - indent, 0)
        if offset <= shown:
            return position + min(indent, len(line)) + offset
        offset -= shown + 1
        position += len(line) + 1
    return 0
