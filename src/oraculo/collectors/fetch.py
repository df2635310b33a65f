"""One HTTP document, fetched with a ceiling on everything: bytes, seconds, redirects.

Whatever goes wrong comes out as a `WorkError` that says whether trying again can help: the network and an overloaded
server heal; a refusal, a missing page, an endless redirect or an oversized answer do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import httpx2

from oraculo import __version__
from oraculo.collectors.guard import GuardedTransport
from oraculo.collectors.parameters import invalid
from oraculo.collectors.text import clean, http_url, shorten
from oraculo.errors import WorkError

MAX_BYTES = 5 * 1024 * 1024
MAX_REDIRECTS = 5
_TEMPORARY = frozenset({408, 425, 429})


def new_client(trusted: Collection[str] = ()) -> httpx2.AsyncClient:
    """A client with our name, our redirect ceiling and gzip only; it reaches public hosts and the `trusted` ones."""
    return httpx2.AsyncClient(
        transport=GuardedTransport(trusted),
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        headers={
            "User-Agent": f"oraculo/{__version__} (feed reader)",
            "Accept": "application/atom+xml, application/rss+xml, application/xml;q=0.9, */*;q=0.5",
            "Accept-Encoding": "gzip",
        },
    )


async def fetch(client: httpx2.AsyncClient, url: str, timeout_s: float) -> bytes:
    """The body of a 2xx answer, at most `MAX_BYTES` long, within `timeout_s` seconds in all."""
    if http_url(url) is None:
        raise invalid("o endereço deve ser http ou https e ter um servidor")
    try:
        async with asyncio.timeout(timeout_s), client.stream("GET", url, timeout=timeout_s) as response:
            _check_status(response.status_code)
            return await _read(response)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise WorkError(f"sem resposta completa em {timeout_s:g} s", codigo="rede") from error
    except httpx2.TooManyRedirects as error:
        raise WorkError(
            f"mais de {MAX_REDIRECTS} redirecionamentos", codigo="redirecionamentos", definitivo=True
        ) from error
    except httpx2.UnsupportedProtocol as error:
        raise WorkError(
            "redirecionado para um endereço que não é http nem https", codigo="redirecionamentos", definitivo=True
        ) from error
    except (httpx2.HTTPError, OSError) as error:
        reason = shorten(clean(str(error)), 200) or type(error).__name__
        raise WorkError(f"falha de rede: {reason}", codigo="rede") from error
    except (httpx2.InvalidURL, ValueError) as error:
        raise invalid(f"endereço inválido: {shorten(clean(str(error)), 200)}") from error


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise WorkError(
                f"resposta maior que {MAX_BYTES // 1024 // 1024} MiB", codigo="resposta_grande", definitivo=True
            )
    return bytes(body)


def _check_status(status: int) -> None:
    if 200 <= status < 300:
        return
    temporary = status in _TEMPORARY or status >= 500
    raise WorkError(f"o servidor respondeu HTTP {status}", codigo=f"http_{status}", definitivo=not temporary)
