"""What chance makes of texts that are right: cut, doubled, swapped, with pieces of others and of what was slow once.
Everything comes from one `Random`, so that a seed says which text it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from security.readers import PIECES

_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1e308, -0.0, 2**63, -(2**63) - 1, 2**64, 10**400, "", "\0", "\ud800", "\u202e", "a" * 300,
    "../../etc/passwd", "${a.b}", "<script>", "'; --", "\r\nx: y", [], {}, [[]], {"": None}, "9" * 500, "1e999", "NaN",
    "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59", "2026-02-30T00:00:00Z", "amqp://u:p@h/",
)  # fmt: skip
STEPS_MAX = 6
LONG_PARTS = 20  # one text in so many is as long as it may be


def mutated(random: Random, seeds: Sequence[str], limit: int) -> str:
    """A text of at most so many characters."""
    text = random.choice(seeds) if seeds else "".join(random.choices(PIECES, k=3))
    if random.random() < 0.5:
        text = _of_value(random, text)
    for _ in range(random.randint(0, STEPS_MAX)):
        text = random.choice(_STEPS)(random, text)
    if text and random.randrange(LONG_PARTS) == 0:
        text = text * (limit // len(text) + 1)
    return text[:limit].encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


def value(random: Random, names: Sequence[str], depth: int = 3) -> Any:
    """A value of JSON whose fields have these names, or any."""
    kind = random.random()
    if depth and kind < 0.35:
        return {random.choice(names): value(random, names, depth - 1) for _ in range(random.randint(0, 5))}
    if depth and kind < 0.5:
        return [value(random, names, depth - 1) for _ in range(random.randint(0, 4))]
    return random.choice([random.choice(_ODD), random.choice(names), random.randint(0, 10), random.choice(PIECES)])


def dumped(found: Any) -> str:
    """As JSON, and what JSON cannot say as something near it."""
    return json.dumps(found, ensure_ascii=False)


def _of_value(random: Random, text: str) -> str:
    """Another value, name or type somewhere in a document of JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    for _ in range(random.randint(1, 3)):
        found = _changed(random, found)
    return dumped(found)


def _changed(random: Random, found: Any) -> Any:
    if random.random() < 0.15 or not isinstance(found, dict | list) or not found:
        return random.choice(_ODD)
    if isinstance(found, list):
        where = random.randrange(len(found))
        return [*found[:where], _changed(random, found[where]), *found[where + 1 :]]
    name, act = random.choice(list(found)), random.random()
    if act < 0.1:
        return {key: item for key, item in found.items() if key != name}
    if act < 0.2:
        return {**found, random.choice(PIECES): found[name]}
    return {**found, name: _changed(random, found[name])}


def _cut(random: Random, text: str) -> str:
    first, last = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
    return text[:first] + text[last:]


def _put_in(random: Random, text: str) -> str:
    where = random.randint(0, len(text))
    return text[:where] + random.choice(PIECES) * random.choice((1, 1, 2, 30)) + text[where:]


def _bytes_put_in(random: Random, text: str) -> str:
    """Bytes that are no UTF-8, or control characters."""
    where = random.randint(0, len(text))
    return text[:where] + random.randbytes(random.randint(1, 4)).decode("utf-8", "surrogateescape") + text[where:]


def _doubled(random: Random, text: str) -> str:
    first, last = sorted((random.randint(0, len(text)), random.randint(0, len(text))))
    return text[:last] + text[first:last] * random.randint(1, 20) + text[last:]


def _other_letter(random: Random, text: str) -> str:
    if not text:
        return text
    where = random.randrange(len(text))
    return text[:where] + chr(random.choice((random.randrange(128), random.randrange(0xD800)))) + text[where + 1 :]


_STEPS = (_cut, _put_in, _bytes_put_in, _doubled, _other_letter)
