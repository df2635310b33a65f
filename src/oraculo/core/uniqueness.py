"""Requests that exist once: while an equal one is open, for some time after it began, or for ever.

A key is held by the newest run that began with it. What a later request with the same key says decides whether it is
merged into that run or begins one of its own, which then holds the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class UniqueMode(StrEnum):
    OPEN = "aberta"
    WINDOW = "janela"
    FOREVER = "sempre"


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """`key` is a word of the user or a digest of the request, told apart by what it begins with; `window` is given
    with WINDOW only."""

    key: str
    mode: UniqueMode
    window: timedelta | None = None

    def merges(self, since: datetime, is_open: bool, now: datetime) -> bool:
        """True when a request that says this is one with the run that began at `since`."""
        if self.mode is UniqueMode.FOREVER:
            return True
        if self.mode is UniqueMode.OPEN:
            return is_open
        assert self.window is not None, "a window has a length"
        return now < since + self.window

    def remembered_until(self, since: datetime) -> datetime | None:
        """Until when the key of a run is kept although the run itself is forgotten; None: for ever."""
        if self.mode is UniqueMode.FOREVER:
            return None
        return since if self.window is None else since + self.window


GIVEN, DIGEST = "k:", "d:"  # what keys begin with


def given_key(unique: Uniqueness) -> str | None:
    """The word that the user gave; None when the key is the digest of the request."""
    return unique.key.removeprefix(GIVEN) if unique.key.startswith(GIVEN) else None
