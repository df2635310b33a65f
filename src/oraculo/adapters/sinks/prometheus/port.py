"""`GET /metrics` on a port of its own, in the event loop of the process: for workers, and scrapers without a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

REQUEST_TIMEOUT_S = 5.0  # seconds for a request to come
REQUEST_MAX_BYTES = 16 * 1024  # bytes of a request


@asynccontextmanager
async def metrics_port(host: str, port: int, exposition: Callable[[], bytes]) -> AsyncIterator[int]:
    """The port that is listened on while this is entered; 0 takes a free one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b" ", 2)
                found = method in (b"GET", b"HEAD") and path.partition(b"?")[0] == b"/metrics"
                body = exposition() if found else b"there is /metrics\n"
                status = b"200 OK" if found else b"404 Not Found"
                kind = CONTENT_TYPE_PLAIN_0_0_4.encode() if found else b"text/plain"
                writer.write(
                    b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                    % (status, kind, len(body))
                )
                writer.write(b"" if method == b"HEAD" else body)
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not a request, or the client has gone
        finally:
            writer.close()

    server = await asyncio.start_server(serve, host, port, limit=REQUEST_MAX_BYTES)
    async with server:
        yield server.sockets[0].getsockname()[1]
