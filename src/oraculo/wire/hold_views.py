"""Why orders for a destination wait, as a sentence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from oraculo.core.sentences import Language

HoldOf = Callable[[str], "tuple[str, datetime, str] | None"]  # queue → "paused" or "breaker", since when, and why

_WORDS: dict[Language, dict[str, str]] = {
    "pt": {"paused": "destino pausado desde", "breaker": "disjuntor aberto desde"},
    "en": {"paused": "destination paused since", "breaker": "breaker open since"},
}


def nothing_held(_queue: str) -> None:
    """No destination holds orders back."""
    return


def sentence(queue: str, hold: HoldOf, language: Language) -> str:
    """Why orders for a queue wait; empty when nothing holds them."""
    found = hold(queue)
    if found is None:
        return ""
    what, since, why = found
    return f"{queue}: {_WORDS[language][what]} {since.isoformat(timespec='seconds')}" + (f" ({why})" if why else "")
