"""From settings to the transport of a worker: leases over HTTP, or a broker.

With `ORACULO_BROKER=memory://`, or when a URL is given, orders are leased from the server; otherwise they come from the
broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from oraculo.client.tls import TlsFiles
from oraculo.settings.settings import Settings
from oraculo.worker.signing import OrderVerifier, answer_signer
from oraculo.worker.transport import BrokerTransport, Transport

LEASE_S = 30.0


def leases_over_http(settings: Settings, url: str | None) -> bool:
    """Whether orders are leased from the server."""
    return url is not None or settings.broker.startswith("memory:")


@asynccontextmanager
async def connected(
    settings: Settings,
    worker_name: str,
    *,
    url: str | None = None,
    lease_s: float = LEASE_S,
) -> AsyncIterator[Transport]:
    """Yield the transport that the settings name, or one to the server at `url`. `lease_s` is how long the server waits
    for a sign of life before it gives an order to another worker."""
    tls = TlsFiles(settings.tls.url_ca, settings.tls.url_cert, settings.tls.url_key)
    sign = answer_signer(settings.signatures.key)
    if leases_over_http(settings, url):
        from oraculo.worker.http import HttpTransport

        yield HttpTransport(url or settings.url, settings.key_for(url), worker_name, lease_s, tls, sign, together=True)
        return
    from oraculo.adapters.brokers.connect import broker_of
    from oraculo.adapters.clock import MonotonicClock
    from oraculo.adapters.signing.ed25519 import verify
    from oraculo.client.async_client import AsyncClient
    from oraculo.client.calls import HttpCall
    from oraculo.runtime.probes import prober_of
    from oraculo.worker.references import fetch

    async def resolve(reference: Mapping[str, Any]) -> Any:
        async with AsyncClient(settings.url, settings.key_for(), tls=tls) as client:
            return await fetch(client, reference)

    async def declare(queue: str, schema: Mapping[str, Any]) -> None:
        from oraculo.worker import http

        async with AsyncClient(settings.url, settings.key_for(), tls=tls) as client:
            await http.declare(client, queue, schema)

    async def jwks() -> Any:
        async with AsyncClient(settings.url, settings.key_for(), tls=tls) as client:
            return (await client.call(HttpCall("GET", "/.well-known/jwks.json"))).body

    verifier = OrderVerifier(jwks, verify) if settings.signatures.orders == "require" else None
    broker = broker_of(settings.broker, settings.broker_dwell_s)
    transport = BrokerTransport(broker, own=True, resolve=resolve, sign=sign, verifier=verifier, declare=declare)
    probing = asyncio.create_task(prober_of(broker, MonotonicClock(), transport.watches.values()).run())
    try:
        yield transport
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
