"""Answers that many pages ask for every few seconds, worked out once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, TypeVar

from fastapi import Request

T = TypeVar("T")

KEPT_S = 2.0
KEYS_MAX = 200  # tenants and spans of time; those beyond begin anew


class Kept:
    """Values by key, each for a few seconds. Who asks while one is worked out waits for it."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._found: dict[tuple[Any, ...], tuple[float, asyncio.Future[Any]]] = {}

    async def get(self, key: tuple[Any, ...], work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        known = self._found.get(key)
        if known is None or self._is_over(*known):
            if len(self._found) >= KEYS_MAX:
                self._found.clear()
            known = self._found[key] = (self._now(), asyncio.ensure_future(work()))
        value: T = await asyncio.shield(known[1])
        return value

    def _is_over(self, since: float, found: asyncio.Future[Any]) -> bool:
        failed = found.done() and (found.cancelled() or found.exception() is not None)
        return failed or (found.done() and self._now() - since >= KEPT_S)


def kept_of(request: Request) -> Kept:
    """Those of this application."""
    state = request.app.state
    if not hasattr(state, "kept"):
        state.kept = Kept()
    kept: Kept = state.kept
    return kept
