"""`oraculo mcp`: the server of the Model Context Protocol, for the program that starts it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from oraculo.cli import inputs
from oraculo.cli.output import Url, emit
from oraculo.cli.texts import language, t
from oraculo.client.async_client import AsyncClient
from oraculo.errors import MissingExtraError
from oraculo.settings import settings

PACKAGES = ("mcp", "mcp_types", "jsonschema")


def mcp(
    read_only: Annotated[bool, typer.Option("--read-only", help=t("o.read-only"))] = False,
    url: Url = None,
    json: Annotated[bool, typer.Option("--json", help=t("o.mcp-json"))] = False,
) -> None:
    try:
        from oraculo.mcp.server import listed, serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise MissingExtraError("oraculo mcp", "mcp") from None
    known = settings.load()
    inputs.show_warnings(known)
    client = AsyncClient(
        url or known.url, known.key_for(url), language=language(), words="pt", tls=inputs.tls_of(known)
    )
    if json:
        emit({"tools": asyncio.run(listed(client, read_only=read_only))})
    else:
        asyncio.run(serve(client, read_only=read_only))
