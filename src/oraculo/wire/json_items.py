"""The items of a long JSON list, one after the other, without reading the whole at once.

A list of 16 MiB takes a second to read, and nothing else can happen meanwhile: so it is cut into its items first, with
a pause whenever some thousand brackets and texts have been passed, and each item is read on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oraculo.errors import WireError

PAUSE_TOKENS = 10_000
PAUSE_BYTES = 262_144
# A text that does not end is one token: looked for from each of its quotation marks, it would take the square of time.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def split_items(raw: bytes) -> Iterator[bytes | None]:
    """The bytes of each item of the list in `raw`; None now and then, for the caller to let others have their turn.
    WireError when `raw` is not one list. What is inside an item is for its reader to judge."""
    opened = raw[: len(raw) - len(raw.lstrip(b" \t\r\n"))]
    start = len(opened) + 1
    if raw[len(opened) : start] != b"[":
        raise WireError("not_json", "not a JSON list")
    depth, passed = 1, start
    for number, found in enumerate(_TOKEN.finditer(raw, start), 1):
        if number % PAUSE_TOKENS == 0 or found.end() - passed > PAUSE_BYTES:
            passed = found.end()
            yield None
        sign = found[0] if found.end() - found.start() == 1 else b""
        if sign in (b"[", b"{"):
            depth += 1
        elif sign in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                yield from _last(raw, start, found.start(), found.end())
                return
        elif sign == b"," and depth == 1:
            yield raw[start : found.start()].strip()
            start = found.end()
    raise WireError("not_json", "not JSON: the list does not end")


def _last(raw: bytes, start: int, end: int, after: int) -> Iterator[bytes]:
    if raw[after:].strip(b" \t\r\n") or raw[end:after] != b"]":
        raise WireError("not_json", "not JSON: something follows the list")
    item = raw[start:end].strip()
    if item or raw[:start].rstrip(b" \t\r\n").endswith(b","):
        yield item
