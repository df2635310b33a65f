"""What has arrived of the answer to a webhook."""

from __future__ import annotations

from dataclasses import dataclass, field

EXCERPT_MAX_CHARS = 200  # characters kept of a body


@dataclass(slots=True)
class Answer:
    """The response so far; `status` is None until its first line is here."""

    status: int | None = None
    retry_after: str = ""
    excerpt: bytearray = field(default_factory=bytearray)
