"""How a process that does nothing but orchestrate sets up its interpreter."""

from __future__ import annotations

import gc


def tune() -> None:
    """Collect garbage seldom: states live long and make no cycles, so looking through them again and again is waste (a
    fifth of the time with thousands of orchestrations in flight). What was loaded at the start is never looked at."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
