"""Data that an order refers to: read by the worker before its function is called, from its own server only."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from oraculo.errors import UnknownIdError, WireError
from oraculo.ports.order_data import OrderData
from oraculo.wire import order_links, strict_json
from oraculo.wire.mensagem import ORDER_MAX_BYTES

if TYPE_CHECKING:
    from oraculo.client.async_client import AsyncClient

REFERENCE_KEY = "dados_ref"


async def fetch(client: AsyncClient, reference: Mapping[str, Any]) -> Any:
    """The data, from the client's server. An order names no other: it could send workers anywhere."""
    from oraculo.client.calls import HttpCall, path_segment  # an orchestrator with workers inside needs no client

    digest = _checked(reference)
    query = dict(parse_qsl(urlsplit(str(reference.get("url", ""))).query))
    kept = {name: query[name] for name in (order_links.EXPIRES, order_links.SIGNATURE) if name in query}
    got = await client.call(HttpCall("GET", f"{order_links.PATH}/{path_segment(digest)}", query=kept))
    return got.body


async def read_stored(data: OrderData, reference: Mapping[str, Any]) -> Any:
    """The data, from where the orchestrator of this process keeps them."""
    return await asyncio.to_thread(_read, data, _checked(reference))


def _read(data: OrderData, digest: str) -> Any:
    found = data.open(digest)
    if found is None:
        raise UnknownIdError("order data", digest)
    with found.file:
        raw = found.file.read(ORDER_MAX_BYTES + 1)
    if hashlib.sha256(raw).hexdigest() != digest:
        raise WireError("invalid_field", f"the data {digest} of the order were changed, or are too large")
    return strict_json.loads_trusted(raw)


def _checked(reference: Mapping[str, Any]) -> str:
    digest, size = reference.get("sha256"), reference.get("bytes")
    if not isinstance(digest, str) or not isinstance(size, int) or not 0 <= size <= ORDER_MAX_BYTES:
        raise WireError("invalid_field", f"payload.{REFERENCE_KEY} needs sha256, and bytes up to {ORDER_MAX_BYTES}")
    return digest
