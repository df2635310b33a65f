"""The client of the HTTP API, in a blocking and an asyncio form."""

from oraculo.client.async_client import AsyncClient
from oraculo.client.client import Client
from oraculo.client.results import Page, Submitted
from oraculo.errors import ApiError, ConflictError, NotFoundError, ServerUnreachableError

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ConflictError",
    "NotFoundError",
    "Page",
    "ServerUnreachableError",
    "Submitted",
]
