"""One orchestration as it goes on: its journal without a gap, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from oraculo.core.events import OrchestrationClosed
from oraculo.ports.engine import Engine
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.runtime.watchers import RunWatchers

JOURNAL_PAGE_STEPS = 500


async def follow(
    engine: Engine, store: Store, watchers: RunWatchers, run: int, after: int, heartbeat: float
) -> AsyncGenerator[Recorded | None]:
    """Yield every step from the one that holds event `after` + 1 on, until the orchestration has ended; None every
    `heartbeat` seconds when nothing happens."""
    with watchers.watch(run) as news:
        while True:
            news.clear()
            recorded = await store.events(run, after, JOURNAL_PAGE_STEPS)
            ended = False
            for one in recorded:
                yield one
                after = one.first + len(one.events) - 1
                ended = ended or any(isinstance(event, OrchestrationClosed) for event in one.events)
            if len(recorded) == JOURNAL_PAGE_STEPS:
                continue
            if ended or await _has_ended(engine, run, after):
                return
            try:
                async with asyncio.timeout(heartbeat):
                    await news.wait()
            except TimeoutError:
                yield None


async def _has_ended(engine: Engine, run: int, after: int) -> bool:
    state = await engine.state(run)
    return state is None or (state.closed_at is not None and state.version <= after)


async def result(engine: Engine, watchers: RunWatchers, run: int, wait: float | None) -> bytes | None:
    """The aggregate as JSON text when it is final; None when it is still running after `wait` seconds. None as `wait`
    waits for as long as it takes."""
    ending = watchers.ending(run)
    try:
        body = await engine.result(run)
        if body is None and wait is None:
            body = await ending
        elif body is None and wait != 0:
            async with asyncio.timeout(wait):
                body = await ending
    except TimeoutError:
        return None
    finally:
        watchers.forget(run, ending)
    return body
