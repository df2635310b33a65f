"""Named points where a test can make the process die at once, as `kill -9` would, or stop until it is let go on.

`ORACULO_CRASH_AT=after_commit:17` dies the 17th time that point is reached. `after_commit:17:stop` stops there, with
all its threads, until SIGCONT: whatever it works with can be killed at that very moment. Without the variable a point
costs one comparison. The names are listed here so that a test can visit every one.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass

POINTS = (
    "before_commit",  # decided, nothing durable yet
    "after_commit",  # durable, nothing published yet
    "before_close",  # the same as before_commit, where an orchestration ends
    "before_publish",  # messages built, not handed to the broker
    "after_publish",  # confirmed by the broker, not yet recorded
    "before_ack",  # an answer is durable, the broker does not know
    "after_ack",
    "before_answer",  # an accepted request is durable, its client does not know
    "before_notify",
    "after_notify",  # the receiver has the notice, we have not recorded it
)
OF_PLANS = (  # of Fluxo C only
    "before_frame",  # the end is durable, the telemetry frame is not handed to the broker
    "after_frame",  # confirmed by the broker, not yet recorded
)
OF_WORKFLOWS = ("before_begin",)  # with the engine `temporal` only: decided, and Temporal has no workflow for it yet
ALL = (*POINTS, *OF_PLANS, *OF_WORKFLOWS)


@dataclass(slots=True)
class Armed:
    left: int
    signal: signal.Signals


_armed: dict[str, Armed] = {}


def arm(setting: str | None) -> None:
    """`point:n` or `point:n:stop`, several separated by commas. Unknown points are refused."""
    _armed.clear()
    for part in filter(None, (setting or "").split(",")):
        found = re.fullmatch(r"(\w+)(?::(\d+)(:stop)?)?", part)
        if found is None or found[1] not in ALL:
            raise ValueError(f"{part!r}: allowed are {', '.join(ALL)}, each with :n or :n:stop")
        _armed[found[1]] = Armed(int(found[2] or 1), signal.SIGSTOP if found[3] else signal.SIGKILL)


def point(name: str) -> None:
    if not _armed:
        return
    armed = _armed.get(name)
    if armed is not None:
        armed.left -= 1
        if armed.left <= 0:
            del _armed[name]
            os.kill(os.getpid(), armed.signal)
