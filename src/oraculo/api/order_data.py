"""Collected data that orders refer to, for workers: with the signed link of the order, or with a key that may lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse

from oraculo.api import paths, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.serving import Running
from oraculo.core.access import Scope
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.errors import UnknownIdError
from oraculo.wire import order_links

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["workers"], responses=problems.COMMON_RESPONSES)

CHUNK_BYTES = 256 * 1024


@router.get(
    "/order-data/{digest:segment}",
    summary="Data of an order",
    description="What `dados` of an order would hold, a JSON list, where the order has `dados_ref` instead. `url` in "
    "there is this address, signed and good until the order ends; with it no key is needed.",
    response_class=Response,
    responses={
        200: {"description": "The data", "content": {"application/json": {"schema": {"type": "array", "items": {}}}}},
        **problems.documented(404, 422),
    },
)
@needs(Scope.LEASE_TAKE)
async def order_data(
    oraculo: Running,
    digest: Annotated[str, Path(max_length=64)],
    expira: Annotated[str, Query(max_length=12, alias=order_links.EXPIRES)] = "",
    assinatura: Annotated[str, Query(max_length=64, alias=order_links.SIGNATURE)] = "",
) -> Response:
    references = oraculo.references
    if references is not None and oraculo.tenant != DEFAULT_TENANT:  # data say not whose they are, but the link does
        link = {order_links.EXPIRES: expira, order_links.SIGNATURE: assinatura}
        references = (
            references if await asyncio.to_thread(references.links.allows, digest, link, oraculo.now()) else None
        )
    found = None if references is None else await references.open(digest)
    if found is None:
        raise UnknownIdError("order data", digest)
    return StreamingResponse(_chunks(found.file), 200, {"Content-Length": str(found.size)}, "application/json")


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    """Read as it is sent, off the event loop."""
    with file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
