"""Reads helm-charts/orchestrator-dynamic/values.yaml with its comments: a value, what it is for, and its schema.

A comment `# -- text` explains the value below it and makes it a leaf, whatever is below; `# @schema {…}` gives its JSON
schema, which is otherwise inferred from the default. A key without such a comment is a group.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "helm-charts" / "orchestrator-dynamic"
KEY = re.compile(r"^( *)([A-Za-z0-9_.-]+):(?: |$)")


class ValuesError(Exception):
    """A value has no explanation, or its type cannot be inferred."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One documented value of the chart."""

    path: tuple[str, ...]
    default: Any
    text: str
    schema: dict[str, Any]

    @property
    def key(self) -> str:
        return ".".join(self.path)


def read(path: Path = CHART / "values.yaml") -> list[Value]:
    """Every value in the order of the file."""
    text = path.read_text(encoding="utf-8")
    return list(_leaves(text, yaml.safe_load(text)))


def _leaves(text: str, document: dict[str, Any]) -> Iterator[Value]:
    groups: list[tuple[int, str]] = []
    comment: list[str] = []
    skip_deeper_than: int | None = None
    for line in text.splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if skip_deeper_than is not None and stripped and indent > skip_deeper_than:
            continue
        if stripped.startswith("#"):
            comment.append(stripped.removeprefix("#").strip())
            continue
        found = KEY.match(line)
        if found is None:
            comment = []
            continue
        skip_deeper_than = None
        groups = [one for one in groups if one[0] < indent]
        path = (*(name for _, name in groups), found[2])
        words, schema = _explanation(comment)
        comment = []
        default = _at(document, path)
        if words:
            skip_deeper_than = indent
            yield Value(path, default, words, schema or _inferred(path, default))
        elif isinstance(default, dict) and default:
            groups.append((indent, found[2]))
        else:
            raise ValuesError(f"{'.'.join(path)} has no explanation (# -- …)")


def _explanation(comment: list[str]) -> tuple[str, dict[str, Any]]:
    words: list[str] = []
    schema: dict[str, Any] = {}
    for line in comment:
        if line.startswith("@schema "):
            schema = json.loads(line.removeprefix("@schema "))
        elif line.startswith("-- "):
            words = [line.removeprefix("-- ")]
        elif words:
            words.append(line)
    return " ".join(words), schema


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document[name]
    return document


def _inferred(path: tuple[str, ...], default: Any) -> dict[str, Any]:
    match default:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer", "minimum": 0}
        case float():  # --set gives numbers with a point as text
            return {"type": ["number", "string"], "pattern": r"^[0-9]+(\.[0-9]+)?$"}
        case str():
            return {"type": "string"}
        case list():
            return {"type": "array"}
        case dict():
            return {"type": "object"}
        case _:
            raise ValuesError(f"{'.'.join(path)} needs a schema (# @schema …)")
