"""Which hosts a feed may come from: the public internet, and what the operator trusts.

Addresses of feeds come with requests, so without a guard a client that may ask for a collection could make the worker
read the network that it lives in. The name is resolved once, judged, and that very address is connected to: an answer
of the DNS that changes in between changes nothing. Redirects come through here too.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from ipaddress import ip_address
from urllib.request import getproxies, proxy_bypass

import httpx2

from oraculo.adapters.sinks.address_guard import address_refusal
from oraculo.errors import WorkError

_PORTS = {"http": 80, "https": 443}


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to public addresses only, and to any `host:port` in `trusted`.

    Where the environment names a proxy for the host, the request goes there instead: what it lets out is its policy.
    """

    def __init__(self, trusted: Collection[str]) -> None:
        self._trusted = frozenset(trusted)
        # A kept connection could serve another name on the same address with the first one's certificate.
        self._limits = httpx2.Limits(max_keepalive_connections=0)
        self._direct = httpx2.AsyncHTTPTransport(limits=self._limits)
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if url.scheme not in _PORTS or not url.host:
            raise httpx2.UnsupportedProtocol("not an http or https address", request=request)
        port = url.port or _PORTS[url.scheme]
        if host_port(url) in self._trusted:
            return await self._direct.handle_async_request(request)
        if proxy := _proxy_for(url.scheme, url.host):
            return await self._through(proxy).handle_async_request(request)
        return await self._connect(request, await _public_addresses(url.host, port))

    async def aclose(self) -> None:
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()

    async def _connect(self, request: httpx2.Request, addresses: list[str]) -> httpx2.Response:
        """Try each address in turn; the Host header and the name on the certificate stay the original ones."""
        for position, address in enumerate(addresses, 1):
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
            try:
                return await self._direct.handle_async_request(pinned)
            except httpx2.ConnectError:
                if position == len(addresses):
                    raise
        raise httpx2.ConnectError("the name has no address", request=request)

    def _through(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        if proxy not in self._proxied:
            self._proxied[proxy] = httpx2.AsyncHTTPTransport(proxy=proxy, limits=self._limits)
        return self._proxied[proxy]


def host_port(url: httpx2.URL) -> str:
    """`host:port`, with the scheme's port when the address has none."""
    return f"{url.host}:{url.port or _PORTS.get(url.scheme, 0)}"


def _proxy_for(scheme: str, host: str) -> str | None:
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    return proxy if proxy and not proxy_bypass(host) else None


async def _public_addresses(host: str, port: int) -> list[str]:
    """What the name resolves to; one address that is not public refuses them all."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise WorkError(f"o nome {host} não foi encontrado: {error.strerror}", codigo="rede") from error
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    for address in addresses:
        kind = address_refusal(ip_address(address))
        if kind is not None:
            # The kind only: what an internal name resolves to is not for the client that asked.
            raise WorkError(
                f"{host}:{port} não é um endereço público ({kind}); "
                "quem opera o worker pode liberá-lo em ORACULO_FEEDS_ALLOW",
                codigo="endereco_recusado",
                definitivo=True,
            )
    return addresses
