"""Functions of texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, ValidationError

from oraculo.errors import ExpressionError
from oraculo.expressions.functions.registry import function, list_of, method, text_of, whole_of
from oraculo.expressions.values import Run, Value, a_kind

REGEX_CHARS_PER_UNIT = 64


def _about_two_texts(name: str, answer: Callable[[str, str], bool]) -> None:
    def made(run: Run, position: int, given: tuple[Value, ...]) -> bool:
        text, other = (text_of(name, one, given, position) for one in given)
        run.charge_text(len(text) + len(other), position)
        return answer(text, other)

    method(name, 2)(made)


_about_two_texts("contains", lambda text, other: other in text)
_about_two_texts("startsWith", str.startswith)
_about_two_texts("endsWith", str.endswith)


@function("matches", 2)
@method("matches", 2)
def _matches(run: Run, position: int, given: tuple[Value, ...]) -> bool:
    """Searched by an engine whose time is linear in the text, whatever the pattern."""
    text, pattern = (text_of("matches", one, given, position) for one in given)
    run.charge(1 + len(text) * len(pattern) // REGEX_CHARS_PER_UNIT, position)
    try:
        _pattern(pattern).validate_python(text)
    except ValidationError:
        return False
    except SchemaError as error:
        reason = str(error).strip().rpartition("\n")[2].removeprefix("error: ").strip()
        raise ExpressionError(f"matches: {pattern[:64]!r} is no pattern: {reason}", position) from None
    return True


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> SchemaValidator:
    return SchemaValidator({"type": "str", "pattern": pattern, "regex_engine": "rust-regex"})


def _cased(name: str, change: Callable[[bytes], bytes]) -> None:
    """Only the letters of ASCII change."""
    table = str.maketrans({chr(code): change(bytes([code])).decode() for code in range(128)})

    def made(run: Run, position: int, given: tuple[Value, ...]) -> str:
        text = text_of(name, given[0], given, position)
        run.charge_text(len(text), position)
        return text.translate(table)

    method(name, 1)(made)


_cased("lowerAscii", bytes.lower)
_cased("upperAscii", bytes.upper)


@method("replace", 3, 4)
def _replace(run: Run, position: int, given: tuple[Value, ...]) -> str:
    text, old, new = (text_of("replace", one, given, position) for one in given[:3])
    most = whole_of("replace", given[3], given, position) if len(given) == 4 else -1
    run.charge_text(len(text), position)
    found = text.count(old) if most < 0 else min(text.count(old), most)
    run.charge_text(max(len(text) + found * (len(new) - len(old)), 0), position)
    return text.replace(old, new, most)


@method("substring", 2, 3)
def _substring(run: Run, position: int, given: tuple[Value, ...]) -> str:
    text = text_of("substring", given[0], given, position)
    start = whole_of("substring", given[1], given, position)
    end = whole_of("substring", given[2], given, position) if len(given) == 3 else len(text)
    if not 0 <= start <= end <= len(text):
        raise ExpressionError(f"substring: {start} to {end} is not within 0 to {len(text)}", position)
    run.charge_text(end - start, position)
    return text[start:end]


@method("split", 2, 3)
def _split(run: Run, position: int, given: tuple[Value, ...]) -> list[Value]:
    text, by = (text_of("split", one, given, position) for one in given[:2])
    most = whole_of("split", given[2], given, position) if len(given) == 3 else -1
    run.charge_text(len(text), position)
    run.charge(len(text) + 1 if not by else text.count(by) + 1, position)
    if most == 0:
        return []
    if by:
        return list(text.split(by, most - 1 if most > 0 else -1))
    letters = list(text)
    return letters if most < 0 or most >= len(letters) else [*letters[: most - 1], "".join(letters[most - 1 :])]


@method("join", 1, 2)
def _join(run: Run, position: int, given: tuple[Value, ...]) -> str:
    items = list_of("join", given[0], given, position)
    by = text_of("join", given[1], given, position) if len(given) == 2 else ""
    run.charge(len(items), position)
    for item in items:
        if not isinstance(item, str):
            raise ExpressionError(f"join: the list holds {a_kind(item)}; every element is to be a string", position)
    run.charge_text(sum(map(len, items)) + len(by) * len(items), position)
    return by.join(items)
