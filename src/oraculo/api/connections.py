"""Connections that never say what they want cost their owner, not everybody else.

A header has ten seconds to arrive and a size; what is not HTTP is told so in a problem document, as everything else is.
There are fewer connections than file descriptors, so that the database can always be opened; when all are taken, the
one that has waited longest without a request makes room for the next. So a flood of half-open connections is pushed
out by connections with requests.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter, OrderedDict
from ipaddress import ip_address
from typing import Any, Protocol

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from oraculo.api import problems
from oraculo.api.problems import ProblemError

log = structlog.get_logger("oraculo.api")

HEADER_TIMEOUT_S = 10.0
HEADER_MAX_BYTES = 16_384
KEPT_DESCRIPTORS = 200  # for the database, brokers, logs and artefacts
WANTED_DESCRIPTORS = 65_536
MIN_CONNECTIONS = 64


def connection_limit() -> int:
    """How many connections may be open at once. Raises the soft limit of file descriptors as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    available = WANTED_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, WANTED_DESCRIPTORS)
    return max(available - KEPT_DESCRIPTORS, MIN_CONNECTIONS)


class Evictable(Protocol):
    """A connection that can be ended for another."""

    def end(self) -> None: ...


class ConnectionGuard:
    """The connections of one server. `limit` bounds all of them; one address beyond loopback has half at most."""

    def __init__(self, limit: int, header_timeout_s: float = HEADER_TIMEOUT_S) -> None:
        self.limit = limit
        self.header_timeout_s = header_timeout_s
        self.evicted = 0
        self._open: dict[Evictable, str] = {}
        self._idle: OrderedDict[Evictable, None] = OrderedDict()  # without a request, longest first
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def protocol(self, *arguments: Any, **options: Any) -> GuardedProtocol:
        """What uvicorn calls for each connection."""
        return GuardedProtocol(self, *arguments, **options)

    def opened(self, connection: Evictable, address: str) -> bool:
        """False when there is no room for it: every other one is at work."""
        shared = self._by_address[address] >= self.limit // 2 and not _is_local(address)
        if (shared or len(self._open) >= self.limit) and not self._make_room(address if shared else None):
            return False
        self._open[connection] = address
        self._by_address[address] += 1
        self._idle[connection] = None
        return True

    def closed(self, connection: Evictable) -> None:
        address = self._open.pop(connection, None)
        self._idle.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def busy(self, connection: GuardedProtocol) -> None:
        self._idle.pop(connection, None)

    def idle(self, connection: GuardedProtocol) -> None:
        if connection in self._open:
            self._idle[connection] = None

    def _make_room(self, address: str | None) -> bool:
        """End the connection that has been idle longest, of one address or of all."""
        longest = next((one for one in self._idle if address is None or self._open[one] == address), None)
        if longest is None:
            return False
        if self.evicted % 1000 == 0:
            log.warning("idle connections closed: too many are open", open=len(self._open), limit=self.limit)
        self.evicted += 1
        self.closed(longest)
        longest.end()
        return True


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's own, with a deadline and a size for headers, and a place in the guard's books."""

    def __init__(self, guard: ConnectionGuard, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._guard = guard
        self._deadline: asyncio.TimerHandle | None = None
        self._in_message = self._in_header = False
        self._data = b""  # that is being read
        self._begun = 0  # requests that began in the data that came last
        self._header_bytes = 0  # of the request line and the fields that are complete
        self._received_bytes = 0  # of a header that is not complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._guard.opened(self, self.client[0] if self.client else ""):
            self._expect_header()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        self._guard.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and not self._at_work():
            self._expect_header()
        under_way, self._begun, self._data = self._in_message, 0, data
        super().data_received(data)
        self._data = b""
        if self._in_header and not self.transport.is_closing():
            self._check_received(len(data), under_way)
        if self._at_work():
            self._stop_deadline()
            self._guard.busy(self)

    def on_response_complete(self) -> None:
        self._guard.idle(self)
        super().on_response_complete()  # handles what came meanwhile, which may make it busy again
        if self._at_work():
            self._guard.busy(self)

    # -- what the parser finds; an error that is raised here becomes its own ------------------------------------------

    def on_message_begin(self) -> None:
        self._in_message = self._in_header = True
        self._header_bytes = 0
        self._begun += 1
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._in_message = False
        super().on_message_complete()

    def on_url(self, url: bytes) -> None:
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_header(len(name) + len(value) + len(b": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_header = False
        super().on_headers_complete()

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > HEADER_MAX_BYTES:
            raise ValueError("the header is too large")

    def _check_received(self, size: int, under_way: bool) -> None:
        """The parser keeps a field until it is complete. What came before the header in the same data cannot be told
        apart from it, so a header that begins behind another request has that data for free."""
        if not self._begun:
            self._received_bytes += size
        else:
            self._received_bytes = 0 if under_way or self._begun > 1 else size
        if self._received_bytes > HEADER_MAX_BYTES:
            self._refuse(_TOO_LARGE)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what the parser does not take."""
        if self._header_bytes > HEADER_MAX_BYTES:
            self._refuse(_TOO_LARGE)
        elif self._in_header and all(name in self._data.lower() for name in _LENGTHS):
            self._refuse(problems.AMBIGUOUS_LENGTH)
        else:
            self._refuse(_NOT_HTTP)

    def _refuse(self, problem: ProblemError) -> None:
        answer = problems.response(problem, "")
        fields = [b"%s: %s\r\n" % field for field in answer.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[problem.status], *fields, b"\r\n", answer.body]))
        self.transport.close()

    # -- deadlines -----------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Close at once, whatever is under way."""
        self._stop_deadline()
        self.transport.abort()

    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_header(self) -> None:
        self._deadline = self.loop.call_later(self._guard.header_timeout_s, self.end)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


_LENGTHS = (b"\r\ncontent-length:", b"\r\ntransfer-encoding:")  # the parser stops at the name of the second one
_CLOSE = {"Connection": "close"}
_TOO_LARGE = ProblemError(
    "header_too_large", f"the request line and the fields have at most {HEADER_MAX_BYTES} bytes", headers=_CLOSE
)
_NOT_HTTP = ProblemError("invalid_http", "what came is not a request of HTTP/1.1", headers=_CLOSE)


def _is_local(address: str) -> bool:
    """A proxy on this machine speaks for many."""
    try:
        return not address or ip_address(address).is_loopback
    except ValueError:
        return True
