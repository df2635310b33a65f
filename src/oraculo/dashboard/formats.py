"""How values are shown: numbers, durations, sizes, instants, and JSON that folds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from oraculo.wire import strict_json

MOST_NODES = 1500
MOST_CHILDREN = 100
MOST_TEXT = 2000


def number(value: float, language: str, digits: int | None = None) -> str:
    """A number in the reader's form: with one digit behind the point if it has any, or with so many."""
    fraction = digits if digits is not None else int(isinstance(value, float) and bool(value % 1))
    text = f"{value:,.{fraction}f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "pt-BR" else text


def duration(milliseconds: float | None, language: str = "en") -> str:
    if milliseconds is None:
        return "—"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{number(round(seconds, 1), language)} s"
    if seconds < 3600:
        return _parts(int(seconds // 60), "min", int(seconds % 60), "s")
    if seconds < 86400:
        return _parts(int(seconds // 3600), "h", int(seconds % 3600 // 60), "min")
    return _parts(int(seconds // 86400), "d", int(seconds % 86400 // 3600), "h")


def _parts(more: int, unit: str, less: int, small: str) -> str:
    return f"{more} {unit} {less} {small}" if less else f"{more} {unit}"


def size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} kB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MB"


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def absolute(at: datetime) -> str:
    """For readers without scripts; with them it is shown in their own zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def tree(value: Any, key: str | None = None, budget: list[int] | None = None) -> dict[str, Any]:
    """A JSON value for the template `json.html`, cut where it would be too much for a page."""
    left = [MOST_NODES] if budget is None else budget
    left[0] -= 1
    node: dict[str, Any] = {"key": key, "type": _type(value), "more": 0, "children": None}
    if isinstance(value, dict | list):
        pairs = list(value.items()) if isinstance(value, dict) else [(str(n), one) for n, one in enumerate(value)]
        children = []
        for name, inner in pairs[:MOST_CHILDREN]:
            if left[0] <= 0:
                break
            children.append(tree(inner, str(name), left))
        node |= {"children": children, "count": len(pairs), "more": len(pairs) - len(children)}
        return node
    text = value if isinstance(value, str) else strict_json.dumps(value).decode()
    return {**node, "text": text[:MOST_TEXT], "more": max(0, len(text) - MOST_TEXT)}


def _type(value: Any) -> str:
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case bool() | None:
            return "word"
        case str():
            return "text"
        case _:
            return "number"


_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


def indented(text: str) -> str:
    """JSON with a line for each value. Texts and numbers stay as they are written, and so does the order of keys."""
    parts: list[str] = []
    tokens, depth = _TOKENS.findall(text), 0
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else ""
        if token in "[{":
            depth += 1
            parts.append(token if after in ("]", "}") else f"{token}\n{'  ' * depth}")
        elif token in "]}":
            depth -= 1
            parts.append(token if tokens[place - 1] in ("[", "{") else f"\n{'  ' * depth}{token}")
        else:
            parts.append({",": f",\n{'  ' * depth}", ":": ": "}.get(token, token))
    return "".join(parts)
