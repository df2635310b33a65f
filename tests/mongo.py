"""MongoDB for tests: the one that MONGODB_URI names, else FerretDB. Every test has a database of its own."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pymongo import AsyncMongoClient

from servers import shared


def url() -> str:
    return os.environ.get("MONGODB_URI") or shared("ferretdb")


def variables(server: str | None = None) -> dict[str, str]:
    """Settings of an Oráculo that audits there."""
    return {
        "MONGODB_URI": server or url(),
        "MONGODB_DATABASE": f"t_{secrets.token_hex(6)}",
        "MONGODB_MIN_POOL_SIZE": "0",
        "MONGODB_MAX_POOL_SIZE": "4",
    }


@asynccontextmanager
async def opened(settings: dict[str, str]) -> AsyncIterator[Any]:
    """The database that these settings name."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(settings["MONGODB_URI"], tz_aware=True)
    try:
        yield client[settings["MONGODB_DATABASE"]]
    finally:
        await client.close()


async def all_of(database: Any, collection: str) -> list[dict[str, Any]]:
    return [one async for one in database[collection].find({})]
