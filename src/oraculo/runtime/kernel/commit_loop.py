"""The loop that makes commands durable: takes all there is, commits it at once, and tells the other parts.

While the store fails, callers are told so and work that no caller waits for goes back to the head of the queue. A
commit that failed may have been written all the same: that is found out before the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import structlog

from oraculo.backoff import backoff
from oraculo.errors import StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.work import Work
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.handler import Handler
from oraculo.runtime.kernel.transaction import Transaction

log = structlog.get_logger("oraculo.engine")

BATCH_MAX_COMMANDS = 1024  # in one transaction
STORE_RETRY_FIRST_S, STORE_RETRY_MAX_S = 0.1, 2.0

AfterCommit = Callable[[Transaction], None]


class CommitLoop:
    """`resolve` finds out about commits that failed and may have been written; `after_commit` are called in order with
    every transaction that was committed; `store_failed` with every failure of the store."""

    def __init__(
        self,
        queue: CommandQueue,
        handler: Handler,
        clock: Clock,
        resolve: Callable[[dict[int, int]], Awaitable[None]],
        after_commit: Sequence[AfterCommit],
        store_failed: Sequence[Callable[[StoreError], None]] = (),
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._clock = clock
        self._resolve = resolve
        self._after_commit = after_commit
        self._store_failed = store_failed
        self.store_failing_since: datetime | None = None

    async def run(self) -> None:
        handler = self._handler
        pauses = backoff(STORE_RETRY_FIRST_S, STORE_RETRY_MAX_S)
        while True:
            works = await self._queue.take(BATCH_MAX_COMMANDS)
            try:
                if handler.uncertain_commits:
                    await self._resolve(handler.uncertain_commits)
                    handler.uncertain_commits.clear()
                transaction = await handler.handle(works)
            except StoreError as error:
                await self._fail(works, error, next(pauses))
                continue
            if transaction.batch:
                pauses = backoff(STORE_RETRY_FIRST_S, STORE_RETRY_MAX_S)  # it can be written, not only read
            if self.store_failing_since is not None:
                self.store_failing_since = None
                log.info("the store works again")
            for tell in self._after_commit:
                tell(transaction)
            await asyncio.sleep(0)  # readers that waited for this commit run before the next one makes them wait again

    async def _fail(self, works: Sequence[Work], error: StoreError, pause_s: float) -> None:
        """Tell callers, keep internal work, and wait before the next attempt."""
        for work in works:
            work.fail(error)
        self._queue.requeue_internal(works)
        if self.store_failing_since is None:
            self.store_failing_since = self._clock.now()
            log.error("the store failed", error=str(error))
        for tell in self._store_failed:
            tell(error)
        await asyncio.sleep(pause_s)
        self._queue.enqueue([Work()])  # look again, even if no caller asks for anything
