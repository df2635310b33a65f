"""Traces that work leaves behind, good and bad, and how they fade."""

from __future__ import annotations

from datetime import timedelta

NEUTRAL = 0.5
DECAY = 0.1  # an hour
LIFE = timedelta(hours=1)


def strength(success: int, warning: int, failure: int) -> float:
    """Of what is known of an agent altogether."""
    total = success + warning + failure
    return NEUTRAL if not total else (success + 0.5 * warning) / total


def decayed(strength: float, age: timedelta) -> float:
    """What is left of a signal."""
    return 0.0 if age > LIFE else strength * (1 - DECAY) ** (age / timedelta(hours=1))


def net(success: float, failure: float, warning: float) -> float:
    """What signals of all kinds come to."""
    return min(1.0, max(0.0, success - failure - 0.5 * warning))
