"""Loops that should never end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from oraculo.errors import OraculoError

log = structlog.get_logger("oraculo.engine")

AGAIN = 0.1  # seconds


async def for_ever(loop: Callable[[], Awaitable[None]]) -> None:
    """When it fails anyway, say so and run it again."""
    while True:
        try:
            await loop()
        except asyncio.CancelledError:
            raise
        except OraculoError as error:
            log.error("loop failed, restarted", error=str(error))
        except Exception:
            log.exception("loop failed, restarted")
        await asyncio.sleep(AGAIN)
