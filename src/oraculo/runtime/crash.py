"""Named points where a test can make the process die at once, as `kill -9` would.

`ORACULO_CRASH_AT=after_commit:17` dies the 17th time that point is reached. Without the variable a point costs one
comparison. The names are listed here so that a test can visit every one.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "before_commit",  # decided, nothing durable yet
    "after_commit",  # durable, nothing published yet
    "before_publish",  # messages built, not handed to the broker
    "after_publish",  # confirmed by the broker, not yet recorded
    "before_ack",  # an answer is durable, the broker does not know
    "after_ack",
    "before_answer",  # an accepted request is durable, its client does not know
    "before_notify",
    "after_notify",  # the receiver has the notice, we have not recorded it
)

_left: dict[str, int] = {}


def arm(setting: str | None) -> None:
    """`point:n`, several separated by commas. Unknown points are refused."""
    _left.clear()
    for part in filter(None, (setting or "").split(",")):
        name, _, count = part.partition(":")
        if name not in POINTS or not (count or "1").isdigit():
            raise ValueError(f"{part!r}: allowed are {', '.join(POINTS)}, each with :n")
        _left[name] = int(count or "1")


def point(name: str) -> None:
    if not _left:
        return
    left = _left.get(name)
    if left is not None:
        _left[name] = left - 1
        if left <= 1:
            os.kill(os.getpid(), signal.SIGKILL)
