"""How a process that does nothing but orchestrate sets up its interpreter."""

from __future__ import annotations

import enum
import gc


def tune() -> None:
    """Collect garbage seldom: states live long and make no cycles, so looking through them again and again is waste (a
    fifth of the time with thousands of orchestrations in flight). What was loaded at the start is never looked at."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    read_enum_members_quickly()


def read_enum_members_quickly() -> None:
    """Make `Phase.CLOSED` as quick as any attribute of a class. Python 3.11 has a hook on enum classes that is never
    needed, since members are attributes, and that costs every reading of one ten times as much; 3.12 has none."""
    if "__getattr__" in vars(enum.EnumType):
        delattr(enum.EnumType, "__getattr__")
