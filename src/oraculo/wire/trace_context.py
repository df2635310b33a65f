"""W3C trace context: which trace an orchestration belongs to, and the ids of the spans in it.

Ids of spans are hashed from the orchestration's number and the place in it, so every process finds the same ones: after
a crash, on another replica, and long after a message left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b

HEADER = "traceparent"
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?=$|-)")


def parse(text: str | None) -> str | None:
    """The context in the form of version 00; None when it is not one."""
    if not text or len(text) > 512 or _FORM.match(text) is None:
        return None
    return f"00-{text[3:55]}"


def of_message(envelope: str | None, headers: Mapping[str, str]) -> str | None:
    """Of a message: the envelope's own, else that of its headers."""
    return parse(envelope or headers.get(HEADER)) if envelope or headers else None


def make(trace_id: str, span: str, sampled: bool = True) -> str:
    return f"00-{trace_id}-{span}-{'01' if sampled else '00'}"


def trace_id(context: str) -> str:
    return context[3:35]


def span_id(context: str) -> str:
    return context[36:52]


def sampled(context: str) -> bool:
    return int(context[53:55], 16) & 1 == 1


def child(context: str, span: str) -> str:
    """The same trace, one span further down."""
    return f"{context[:36]}{span}{context[52:]}"


def workflow_span(run: int) -> str:
    return _hashed(f"{run}")


def ticket_span(run: int, position: int) -> str:
    return _hashed(f"{run}:{position}")


def attempt_span(run: int, position: int, attempt: int) -> str:
    return _hashed(f"{run}:{position}:{attempt}")


def notice_span(run: int, notice: int, attempt: int) -> str:
    return _hashed(f"{run}:notice:{notice}:{attempt}")


def answer_span(run: int, number: int) -> str:
    return _hashed(f"{run}:event:{number}")


def _hashed(text: str) -> str:
    return blake2b(text.encode(), digest_size=8, person=b"oraculo.span").hexdigest()
