"""The server: a port of its own beside the API, with the same credentials, the same TLS, and the same end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import structlog
from fastapi import FastAPI

from oraculo.apps.grpc_api import health, registry, strategic, tickets
from oraculo.apps.grpc_api.calls import Calls
from oraculo.settings.access_groups import TlsSettings

log = structlog.get_logger("oraculo.grpc")

CALLS_AT_ONCE = 1000
MESSAGE_MAX_BYTES = 1024 * 1024  # as requests over HTTP
DRAIN_S = 5.0  # that calls under way may take at a stop
SERVICES = (health, registry, tickets, strategic)
_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
    ("grpc.so_reuseport", 0),  # a port that is taken is an error
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)


@asynccontextmanager
async def serving(app: FastAPI, host: str, port: int) -> AsyncIterator[int]:
    """Serve the services of the application's orchestrator while this is entered, and give the port; 0 takes a free
    one. OSError: it cannot listen there."""
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=CALLS_AT_ONCE)
    calls = Calls(app)
    server.add_generic_rpc_handlers([calls.handler(one.SERVICE, one.DEEDS) for one in SERVICES])
    address = f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}"
    credentials = credentials_of(app.state.oraculo.settings.tls)
    try:
        if credentials is None:
            found = server.add_insecure_port(address)
        else:
            found = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(f"ORACULO_GRPC_PORT: cannot listen on {address}") from error
    await server.start()
    log.info("gRPC is served", host=host, port=found)
    try:
        yield found
    finally:
        await server.stop(DRAIN_S)


def credentials_of(tls: TlsSettings) -> Any:
    """The TLS of the server for gRPC; None without a certificate."""
    if not tls.cert:
        return None
    chain, key = Path(tls.cert).read_bytes(), Path(tls.key or tls.cert).read_bytes()
    authorities = Path(tls.client_ca).read_bytes() if tls.client_ca else None
    required = authorities is not None and tls.client == "required"
    return grpc.ssl_server_credentials([(key, chain)], authorities, required)
