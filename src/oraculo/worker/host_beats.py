"""Heartbeats of the workers of a host, together in one request.

The first worker of a user on a host gathers: the others tell it over a Unix socket what they would tell the server, and
what it gets back in one request it tells each of them. Everybody is asked to come again at the same instant, so that
a round is one request. A worker that cannot reach it, or waits for it too long, tells the server itself; when it is
gone, the next one that says something takes its place. Workers share a round only when they ask the same server with
the same key.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import structlog

from oraculo.chunks import chunks_by_count, chunks_by_size
from oraculo.errors import ApiError, OraculoError

log = structlog.get_logger("oraculo.worker")

GATHERING_S = 0.5  # how long the sender of a host waits for what its neighbours say
ANSWER_TIMEOUT_S = 10.0  # a worker whose own code holds its event loop gathers nothing
REQUEST_MAX_WORKERS, REQUEST_MAX_BYTES = 1000, 512 * 1024
LINE_MAX_BYTES = 1024 * 1024
SOCKET_PATH_MAX_BYTES = 100
NO_SUCH_ROUTE = (404, 405)  # a server of before there was one request for many

Said = dict[str, Any]
Send = Callable[[list[Said]], Awaitable[list[Said]]]


class HostBeats:
    """One worker's part in it. `send` asks the server for many, in their order; `folder` is this user's alone."""

    def __init__(self, url: str, api_key: str | None, send: Send, folder: Path | None = None) -> None:
        self._send = send
        self._folder = folder or _own_folder()
        self._name = hashlib.blake2b(orjson.dumps([url, api_key]), digest_size=12).hexdigest()
        self._lock: int | None = None  # held by the one that gathers
        self._server: asyncio.Server | None = None
        self._members: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._round: list[tuple[Said, asyncio.Future[Said | None]]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._next_round: dict[float, float] = {}  # by the seconds between two heartbeats
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._alone = False

    @property
    def gathers(self) -> bool:
        """Whether this worker sends what the others say."""
        return self._server is not None

    async def beat(self, said: Said) -> Said | None:
        """What the server told this worker; None: it has to ask itself."""
        if self._alone:
            return None
        try:
            if self._server is None and self._streams is None and not await self._connect():
                await self._lead()
            if self._server is not None:
                return await self._gather(said)
            return None if self._streams is None else await self._ask(said, *self._streams)
        except (OSError, TimeoutError, ValueError) as error:
            log.debug("heartbeat goes alone", error=str(error))
            self._leave()
            return None

    async def close(self) -> None:
        """Gather nothing more: another worker will."""
        self._alone = True
        self._leave()
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        if self._server is not None:
            self._server.close()
            self._path("sock").unlink(missing_ok=True)
            for writer in self._members.values():
                writer.close()
            await asyncio.gather(*self._members)
            self._server = None
        self._unlock()

    # -- as one of the others ------------------------------------------------------------------------------------------

    async def _connect(self) -> bool:
        _check_own(self._folder)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            self._streams = await asyncio.open_unix_connection(self._path("sock"), limit=LINE_MAX_BYTES)
        return self._streams is not None

    async def _ask(self, said: Said, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Said | None:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            writer.write(orjson.dumps(said) + b"\n")
            await writer.drain()
            told = orjson.loads(await reader.readline())  # nothing at all, when it has gone, is no JSON
        return told if isinstance(told, dict) else None

    def _leave(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    # -- as the one that gathers ---------------------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Take the place of the one that gathers, unless another worker is taking it just now."""
        lock = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return
        self._lock = lock
        try:
            self._path("sock").unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(self._member, self._path("sock"), limit=LINE_MAX_BYTES)
        except BaseException:
            self._unlock()
            raise
        log.debug("gathers the heartbeats of this host")

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _member(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._members[task] = writer
        try:
            while line := await reader.readline():
                writer.write(orjson.dumps(await self._gather(orjson.loads(line))) + b"\n")
                await writer.drain()
        except (OSError, ValueError) as error:
            log.debug("a worker of this host went away", error=str(error))
        finally:
            del self._members[task]
            writer.close()

    async def _gather(self, said: Said) -> Said | None:
        """Put a heartbeat into the next request; the first one of a round has it sent a moment later."""
        told: asyncio.Future[Said | None] = asyncio.get_running_loop().create_future()
        self._round.append((said, told))
        if len(self._round) == 1:
            task = asyncio.create_task(self._send_round())
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return await told

    async def _send_round(self) -> None:
        gathered: list[tuple[Said, asyncio.Future[Said | None]]] = []
        try:
            await asyncio.sleep(GATHERING_S)
            gathered, self._round = self._round, []
            sized = chunks_by_size(gathered, REQUEST_MAX_BYTES, lambda one: len(orjson.dumps(one[0])))
            for some in (part for chunk in sized for part in chunks_by_count(chunk, REQUEST_MAX_WORKERS)):
                answers = await self._send([said for said, _ in some])
                now = asyncio.get_running_loop().time()
                for (_, told), answer in zip(some, answers, strict=True):
                    if not told.done():
                        told.set_result(self._in_step(answer, now))
        except (OraculoError, OSError, ValueError) as error:
            log.debug("heartbeats of this host go alone", error=str(error))
            self._alone = self._alone or (isinstance(error, ApiError) and error.status in NO_SUCH_ROUTE)
        finally:  # nobody is left waiting, also when this worker ends
            for _, told in gathered or self._round:
                if not told.done():
                    told.set_result(None)

    def _in_step(self, answer: Said, now: float) -> Said:
        """Have a worker come again with the others that come as often. It never comes later than it was asked to."""
        every = answer.get("proximo_s")
        if not isinstance(every, int | float):
            return answer
        left = self._next_round.get(every, 0.0) - now
        if left < min(2 * GATHERING_S, every / 2):  # this is the round
            self._next_round[every] = now + every
            return answer
        return {**answer, "proximo_s": left}

    def _path(self, kind: str) -> Path:
        path = self._folder / f"{self._name}.{kind}"
        if len(os.fsencode(path)) > SOCKET_PATH_MAX_BYTES:
            raise OSError(f"{path} is too long for a socket")
        return path


def _own_folder() -> Path:
    """Where sockets of this user are; it need not exist."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return Path(given) / "oraculo" if given else Path(tempfile.gettempdir()) / f"oraculo-{os.getuid()}"


def _check_own(folder: Path) -> None:
    """Make the folder where it is not; raise OSError when other users may put something into it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise OSError(f"{folder} is not this user's alone")
