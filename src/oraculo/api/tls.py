"""TLS of the server: the context from the settings, and connections that begin with a handshake.

A handshake is part of what a connection has to do before it may wait: it has the deadline of a header, and counts as
idle until it is over, so half-open ones are pushed out by others (`connections.py`). That is why connections are
accepted here: servers of asyncio and uvloop tell of a connection only when its handshake is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

import structlog

from oraculo.api import spiffe
from oraculo.api.connections import ConnectionGuard, GuardedProtocol
from oraculo.client.tls import load_authority, load_certificate
from oraculo.client.watched_files import WatchedFiles
from oraculo.errors import SettingsError
from oraculo.settings.access_groups import TlsSettings

log = structlog.get_logger("oraculo.api")

SPIFFE_ID = "spiffe_id"  # in the state of a request's scope, where no client can write
LATEST_END_S = 30 * 86_400.0  # connections live shorter than certificates whose end is farther away
ACCEPT_PAUSE_S = 0.1  # after a connection could not be accepted, as for want of file descriptors


def server_context(tls: TlsSettings) -> ssl.SSLContext | None:
    """What the settings say, or None without a certificate. SettingsError names the file that cannot be used."""
    if not tls.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, tls.cert, tls.key, ("ORACULO_TLS_CERT", "ORACULO_TLS_KEY"))
    if tls.client_ca:
        load_authority(context, tls.client_ca, "ORACULO_TLS_CLIENT_CA")
        context.verify_mode = ssl.CERT_REQUIRED if tls.client == "required" else ssl.CERT_OPTIONAL
    return context


class RenewedServerContext:
    """The context of the settings, made anew when one of their files has changed: certificates with a short life are
    renewed under a server that runs, and so is the bundle of their authorities. Connections keep what they began
    with."""

    def __init__(self, tls: TlsSettings, context: ssl.SSLContext) -> None:
        self._tls = tls
        self._context = context
        self._files = WatchedFiles([tls.cert, tls.key, tls.client_ca])

    def __call__(self) -> ssl.SSLContext:
        """What the next handshake is done with. Files that cannot be used leave it as it was."""
        try:
            self._files.renew(self._again)
        except SettingsError as error:
            log.warning("certificates not read again", error=str(error))
        return self._context

    def _again(self) -> None:
        made = server_context(self._tls)
        assert made is not None
        self._context = made
        log.info("certificates read again", file=self._tls.cert)


class Handshake:
    """A connection that was accepted and is not secured yet, in the guard's books."""

    def __init__(self, guard: ConnectionGuard, connection: socket.socket, address: str) -> None:
        self.connection = connection
        self.address = address
        self._guard = guard

    def end(self) -> None:
        """Close at once; whatever waits for it is told."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def over(self) -> None:
        self._guard.closed(self)


class TlsProtocol(GuardedProtocol):
    """A connection whose handshake is over by the time that it is made."""

    def __init__(self, guard: ConnectionGuard, handshake: Handshake, *arguments: Any, **options: Any) -> None:
        super().__init__(guard, *arguments, **options)
        self._handshake = handshake
        self._end: asyncio.TimerHandle | None = None  # of the client's certificate

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._handshake.over()  # its place is for this one
        super().connection_made(transport)
        certificate: dict[str, Any] | None = transport.get_extra_info("peercert")
        if not certificate:
            return
        self.app_state = {**self.app_state, SPIFFE_ID: spiffe.id_of(certificate)}
        left = ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()
        if left < LATEST_END_S:  # what is under way then is answered
            self._end = asyncio.get_running_loop().call_later(max(left, 0.0), self.shutdown)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)


class TlsAcceptor:
    """Takes the connections of a listening socket and secures them. `protocol` makes what uvicorn calls for each."""

    def __init__(
        self,
        guard: ConnectionGuard,
        context: Callable[[], ssl.SSLContext],
        protocol: Callable[[Handshake], TlsProtocol],
    ) -> None:
        self._guard = guard
        self._context = context
        self._protocol = protocol
        self._handshakes: set[asyncio.Task[None]] = set()

    async def run(self, listener: socket.socket) -> None:
        """Until cancelled; handshakes that are under way then are given up."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, address = await loop.sock_accept(listener)
                except OSError as error:
                    log.warning("connection not accepted", error=error.strerror or str(error))
                    await asyncio.sleep(ACCEPT_PAUSE_S)
                    continue
                handshake = Handshake(self._guard, connection, address[0])
                if not self._guard.opened(handshake, address[0]):
                    connection.close()
                    continue
                task = loop.create_task(self._secure(handshake))
                self._handshakes.add(task)
                task.add_done_callback(self._handshakes.discard)
        finally:
            for task in self._handshakes:
                task.cancel()

    async def _secure(self, handshake: Handshake) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._protocol(handshake),
                handshake.connection,
                ssl=self._context(),
                ssl_handshake_timeout=self._guard.header_timeout_s,
            )
        except OSError as error:  # ssl.SSLError and what stands for a timeout are, too
            log.info("connection refused: no TLS handshake", client=handshake.address, error=str(error) or "closed")
            handshake.connection.close()
        finally:
            handshake.over()
