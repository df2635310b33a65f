"""What a word without quotes means in YAML.

YAML 1.1 and 1.2 disagree on `no`, `010`, `1_000` and `12:30`, and tools follow one or the other. They are refused,
with the ways of writing what was meant. Instants are texts.
"""

from __future__ import annotations

import re

from oraculo.plans.faults import FaultCode, shown
from oraculo.plans.model import Json
from oraculo.plans.source.json_events import number

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_UNCLEAR = re.compile(
    r"[-+]?0[0-9_]+(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"  # 010: eight or ten
    r"|[-+]?0[oxb][0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9]+\.[0-9]*_[0-9_]*"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # 12:30: base 60
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    re.ASCII,
)


def plain_value(text: str) -> tuple[Json, tuple[FaultCode, str] | None]:
    """The value of a word without quotes, and why it is refused."""
    if text in _NULLS:
        return None, None
    if text in _TRUTHS:
        return _TRUTHS[text], None
    meant = _SWITCHES.get(text.lower()) if text in (text.lower(), text.upper(), text.capitalize()) else None
    if meant is not None:
        message = f"{text} is true or false to some YAML tools and a text to others; write {meant} or '{text}'"
        return text, (FaultCode.AMBIGUOUS, message)
    if _WHOLE.fullmatch(text):
        return number(text, whole=True)
    if _REAL.fullmatch(text):
        return number(text, whole=False)
    if _UNCLEAR.fullmatch(text):
        message = f"{shown(text)} is a number to some YAML tools and not to others; write it in digits or in quotes"
        return text, (FaultCode.AMBIGUOUS, message)
    return text, None


def is_plain_text(text: str) -> bool:
    """Whether the word means itself without quotes."""
    value, fault = plain_value(text)
    return fault is None and value == text and isinstance(value, str)
