"""One POST of a webhook over HTTP. Imported when the first one is sent, since the HTTP library is of no use before."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from oraculo.adapters.sinks.address_guard import Target
from oraculo.adapters.sinks.webhook_answer import EXCERPT_MAX_CHARS, Answer

ANSWER_MAX_BYTES = 64 * 1024  # bytes read of an answer


def tls_context() -> ssl.SSLContext:
    """Read the system's certificates, which takes a moment."""
    return httpx2.create_ssl_context(trust_env=False)


async def post(
    target: Target,
    addresses: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    answer: Answer,
    tls: ssl.SSLContext,
    timeout_s: float,
) -> None:
    """Try the addresses in turn until one takes the connection; nothing was sent before that."""
    for address in addresses:
        request = httpx2.Request(
            "POST",
            httpx2.URL(scheme=target.scheme, host=address, port=target.port, raw_path=target.path.encode("ascii")),
            headers=headers,
            content=body,
            # The name to verify the certificate against, since the URL has the address.
            extensions={"sni_hostname": target.host, "timeout": {"connect": timeout_s / len(addresses)}},
        )
        try:
            return await _exchange(request, answer, tls)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if address == addresses[-1]:
                raise


async def _exchange(request: httpx2.Request, answer: Answer, tls: ssl.SSLContext) -> None:
    async with httpx2.AsyncHTTPTransport(verify=tls, trust_env=False) as transport, _closing_socket(request):
        response = await transport.handle_async_request(request)
        try:
            answer.retry_after = response.headers.get("retry-after", "")
            answer.status = response.status_code
            await _read_some(response, answer)
        finally:
            await response.aclose()


@asynccontextmanager
async def _closing_socket(request: httpx2.Request) -> AsyncIterator[None]:
    """Close the socket of `request` whatever happens.

    httpcore2 2.16 forgets it when it is cancelled during the TLS handshake, so a receiver that accepts and then
    stays silent would cost a descriptor per attempt.
    """
    opened: list[Any] = []

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            opened.append(info["return_value"])

    request.extensions["trace"] = trace
    try:
        yield
    finally:
        for stream in opened:
            await stream.aclose()


async def _read_some(response: httpx2.Response, answer: Answer) -> None:
    """Read the raw body (nothing is decompressed) up to the limit; keep its beginning."""
    taken, keep = 0, EXCERPT_MAX_CHARS * 4  # a character of UTF-8 has at most four bytes
    async for chunk in response.aiter_raw():
        answer.excerpt += chunk[: keep - len(answer.excerpt)]
        taken += len(chunk)
        if taken >= ANSWER_MAX_BYTES:
            return
