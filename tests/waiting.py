"""Waiting in tests: for a condition, with a deadline that a busy machine keeps.

`until` waits inside an event loop, `eventually` blocks its thread. Both return what the condition gave, and fail with
what they waited for, the last value they saw and the variables that the condition reads. A deadline says when a test
gives up, not how quick the product is: a test about speed measures it and says so.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

DEADLINE_S = 60.0
POLL_INTERVAL_S = 0.01
VALUE_MAX_CHARACTERS = 300

T = TypeVar("T")
Errors = tuple[type[Exception], ...]


@overload
async def until(
    condition: Callable[[], Awaitable[T]],
    what: str = "",
    *,
    within: float = DEADLINE_S,
    pause: float = POLL_INTERVAL_S,
    ignoring: Errors = (),
) -> T: ...


@overload
async def until(
    condition: Callable[[], T],
    what: str = "",
    *,
    within: float = DEADLINE_S,
    pause: float = POLL_INTERVAL_S,
    ignoring: Errors = (),
) -> T: ...


async def until(
    condition: Callable[[], Any],
    what: str = "",
    *,
    within: float = DEADLINE_S,
    pause: float = POLL_INTERVAL_S,
    ignoring: Errors = (),
) -> Any:
    """Return the first true value of `condition`, which may be awaitable; exceptions in `ignoring` count as false."""
    seen: object = None
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    value = condition()
                    if inspect.isawaitable(value):
                        value = await value
                    seen = value
                    if value:
                        return value
                except ignoring as error:
                    seen = error
                await asyncio.sleep(pause)
    except TimeoutError:
        raise AssertionError(_failure(condition, what, within, seen)) from None


def eventually(
    condition: Callable[[], T],
    what: str = "",
    *,
    within: float = DEADLINE_S,
    pause: float = POLL_INTERVAL_S,
    ignoring: Errors = (),
) -> T:
    """Return the first true value of `condition`; exceptions in `ignoring` count as false."""
    seen: object = None
    end = time.monotonic() + within
    while True:
        try:
            seen = value = condition()
            if value:
                return value
        except ignoring as error:
            seen = error
        if time.monotonic() > end:
            raise AssertionError(_failure(condition, what, within, seen))
        time.sleep(pause)


def _failure(condition: Callable[[], object], what: str, within: float, seen: object) -> str:
    return f"not within {within:g} s: {what or _source(condition)}; last value: {_short(seen)}{_variables(condition)}"


def _source(condition: Callable[[], object]) -> str:
    try:
        return " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        return repr(condition)


def _variables(condition: Callable[[], object]) -> str:
    try:
        names = inspect.getclosurevars(condition).nonlocals
    except (TypeError, ValueError):
        return ""
    return "".join(f"\n  {name} = {_short(value)}" for name, value in names.items())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= VALUE_MAX_CHARACTERS else f"{text[:VALUE_MAX_CHARACTERS]}…"
