"""Who waits for news of an orchestration: streams that want the next events, callers that want the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class RunWatchers:
    def __init__(self) -> None:
        self._watchers: dict[int, set[asyncio.Event]] = {}
        self._waiters: dict[int, list[asyncio.Future[bytes]]] = {}

    @contextmanager
    def watch(self, run: int) -> Iterator[asyncio.Event]:
        """An event that is set whenever something of `run` was committed. Look first, then wait, then clear."""
        event = asyncio.Event()
        self._watchers.setdefault(run, set()).add(event)
        try:
            yield event
        finally:
            watchers = self._watchers[run]
            watchers.discard(event)
            if not watchers:
                del self._watchers[run]

    def ending(self, run: int) -> asyncio.Future[bytes]:
        """A future that gets the result when `run` ends. Ask before looking whether it has ended."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(run, []).append(future)
        return future

    def forget(self, run: int, future: asyncio.Future[bytes]) -> None:
        waiters = self._waiters.get(run)
        if waiters is not None:
            if future in waiters:
                waiters.remove(future)
            if not waiters:
                del self._waiters[run]

    def watched(self) -> list[int]:
        """Return every run that has a watcher or a waiting caller."""
        return list(self._watchers.keys() | self._waiters.keys())

    def awaited(self, run: int) -> bool:
        """True if a caller waits for the end of this run."""
        return run in self._waiters

    @property
    def any_watch(self) -> bool:
        """True while a stream waits for the next commit of some run."""
        return bool(self._watchers)

    def changed(self, run: int) -> None:
        for event in self._watchers.get(run, ()):
            event.set()

    def ended(self, run: int, result: bytes) -> None:
        for future in self._waiters.pop(run, ()):
            if not future.done():
                future.set_result(result)
