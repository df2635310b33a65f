"""A TCP proxy whose network can be made to fail while connections run through it.

    with Proxy(server.port) as proxy:
        connect(proxy.port)
        proxy.black_hole()
        ...
        proxy.heal()

It runs in a thread of its own. A fault is in force when the call that asks for it returns; a new one takes the place
of the one before. `reset` and `abandon` are events that change no fault.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Self, cast

HOST = "127.0.0.1"
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: close() sends RST instead of FIN


class Fault(Enum):
    NONE = "none"
    BLACK_HOLE = "black hole"
    HALF_OPEN = "half open"


class Proxy:
    """From `port` to `target_port`, both of this host. `connections` are those open now, `accepted` those ever made;
    `swallowed` counts the bytes that were thrown away."""

    def __init__(self, target_port: int, port: int = 0) -> None:
        self.target_port = target_port
        self.port = port
        self.accepted = 0
        self.swallowed = 0
        self.fault = Fault.NONE
        self.lag = 0.0
        self.left: int | None = None  # bytes that may still go to clients
        self.then_reset = False
        self.links: set[_Link] = set()
        self.sockets: set[_Half] = set()
        self.tasks: set[asyncio.Task[object]] = set()  # connections being made
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    # -- faults ------------------------------------------------------------------------------------------------------

    def pass_(self) -> None:
        """No fault from now on; a listener that was closed stays closed (`heal` opens it)."""
        self._call(self._set, Fault.NONE)

    def black_hole(self) -> None:
        """Connections are accepted and kept, nothing is forwarded either way. What was sent meanwhile goes on when it
        heals, as after a partition that was shorter than TCP's patience."""
        self._call(self._set, Fault.BLACK_HOLE)

    def half_open(self) -> None:
        """What clients send arrives; what the server answers is lost."""
        self._call(self._set, Fault.HALF_OPEN)

    def cut_after(self, count: int, *, reset: bool = False) -> None:
        """`count` more bytes reach the clients, all together; then it is half open, or, with `reset`, every connection
        is reset and new ones work."""
        self._call(self._set, Fault.NONE, 0.0, count, reset)

    def delay(self, seconds: float) -> None:
        """Everything arrives that much later, in both directions."""
        self._call(self._set, Fault.NONE, seconds)

    def reset(self) -> None:
        """Every connection is reset now, at both ends."""
        self._call(self._reset)

    def abandon(self) -> None:
        """Let nothing pass on open connections without telling either end; new ones work. So it is when a
        router forgets about connections."""
        self._call(self._abandon)

    def refuse(self) -> None:
        """Nobody can connect until it heals; connections that stand are not touched."""
        self._call(self._close_listener)

    def heal(self) -> None:
        """All is well again. Connections that lost bytes or were abandoned cannot go on and are reset."""
        self._call(self._heal)

    @property
    def connections(self) -> int:
        return len(self.links)

    # -- life --------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._open_listener)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._close_listener()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for half in list(self.sockets):
            half.reset()
        await asyncio.sleep(0)

    def _open_listener(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server((HOST, self.port), backlog=1024)
            self._listener.setblocking(False)
            self.port = self._listener.getsockname()[1]
            self._loop.add_reader(self._listener, self._accept)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it went away meanwhile
            assert self._listener is not None
            accepted, _ = self._listener.accept()
            link = _Link(self)
            self.go(self._loop.connect_accepted_socket(lambda: link.client, accepted))

    def go(self, what: Coroutine[Any, Any, object]) -> None:
        task = self._loop.create_task(what)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # -- in its thread -----------------------------------------------------------------------------------------------

    def _call(self, change: Callable[..., None], *arguments: object) -> None:
        async def run() -> None:
            change(*arguments)

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _set(self, fault: Fault, lag: float = 0.0, left: int | None = None, then_reset: bool = False) -> None:
        self.fault, self.lag, self.left, self.then_reset = fault, lag, left, then_reset
        for link in list(self.links):
            link.look()

    def _reset(self) -> None:
        for link in list(self.links):
            link.reset()

    def _abandon(self) -> None:
        for link in self.links:
            link.torn = link.abandoned = True
            link.look()

    def _heal(self) -> None:
        for link in list(self.links):
            if link.torn:
                link.reset()
        self._set(Fault.NONE)
        self._open_listener()

    def spend(self, data: bytes) -> bytes:
        """What of `data`, which came from the server, may go to a client."""
        if self.left is None:
            return data
        data, lost = data[: self.left], data[self.left :]
        self.left -= len(data)
        if self.left == 0:
            self.left = None
            if self.then_reset:
                self._loop.call_soon(self._reset)
            else:
                self.fault = Fault.HALF_OPEN
        self.swallowed += len(lost)
        return data


class _Link:
    """A connection: the half that talks to the client and the half that talks to the server."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.client = _Half(self)
        self.server = _Half(self)
        self.client.peer, self.server.peer = self.server, self.client
        self.torn = False  # bytes are missing in the middle, or never come
        self.abandoned = False
        self._dialled = False

    def made(self, half: _Half) -> None:
        if half is self.client:
            self.proxy.links.add(self)
            self.proxy.accepted += 1
        # Not at once: Python before 3.11.3 begins to read after this, whatever was said here.
        asyncio.get_running_loop().call_soon(self.look)

    def look(self) -> None:
        """Do what the fault of the moment asks for."""
        holding = self.proxy.fault is Fault.BLACK_HOLE or self.abandoned
        if not holding and not self._dialled:
            self._dialled = True
            self.proxy.go(self._dial())
        for half in (self.client, self.server):
            half.hold(holding or half.peer.transport is None)

    async def _dial(self) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.server, HOST, self.proxy.target_port)
        except OSError:
            self.reset()
        if self not in self.proxy.links:
            self.reset()

    def came(self, half: _Half, data: bytes) -> None:
        if half is self.server:
            if self.proxy.fault is Fault.HALF_OPEN:
                self.torn = True
                self.proxy.swallowed += len(data)
                return
            passed = self.proxy.spend(data)
            if len(passed) < len(data):
                self.torn = True
            data = passed
        if data:
            half.peer.send(data)

    def reset(self) -> None:
        self.proxy.links.discard(self)
        for half in (self.client, self.server):
            half.reset()

    def gone(self) -> None:
        """One half was closed or reset by its other end; so is the other."""
        self.proxy.links.discard(self)
        for half in (self.client, self.server):
            half.close()


class _Half(asyncio.Protocol):
    """One socket. `peer` is the socket on the other side of the proxy."""

    peer: _Half

    def __init__(self, link: _Link) -> None:
        self.link = link
        self.transport: asyncio.Transport | None = None
        self._held = False
        self._full = False  # the peer's buffer is
        self._later: deque[tuple[float, bytes]] = deque()  # what is on its way to this socket; b"" is the end
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    # -- asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.link.proxy.sockets.add(self)
        self.link.made(self)

    def data_received(self, data: bytes) -> None:
        self.link.came(self, data)

    def eof_received(self) -> bool:
        self.peer.send(b"")
        return True  # the other direction may go on

    def connection_lost(self, error: Exception | None) -> None:
        self.link.proxy.sockets.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if error is not None:
            self.link.reset()
        else:
            self.link.gone()

    def pause_writing(self) -> None:
        self.peer.full(True)

    def resume_writing(self) -> None:
        self.peer.full(False)

    # -- what the link asks for --------------------------------------------------------------------------------------

    def hold(self, held: bool) -> None:
        self._held = held
        self._listen()

    def full(self, full: bool) -> None:
        self._full = full
        self._listen()

    def _listen(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            if self._held or self._full:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def send(self, data: bytes) -> None:
        lag = self.link.proxy.lag
        if lag or self._later:
            due = asyncio.get_running_loop().time() + lag
            self._later.append((max(due, self._later[-1][0]) if self._later else due, data))
            self._wait()
        else:
            self._send(data)

    def _wait(self) -> None:
        if self._later and self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._later[0][0], self._flush)

    def _flush(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            self._send(self._later.popleft()[1])
        self._wait()

    def _send(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if data:
            self.transport.write(data)
            return
        self._ended = True
        self.transport.write_eof()
        if self.peer._ended:
            self.link.gone()

    def reset(self) -> None:
        if self.transport is not None:
            # It may be closed already.
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()
