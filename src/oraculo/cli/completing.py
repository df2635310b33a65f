"""What a shell offers after TAB: statuses, and ids that the server knows.

A shell waits for the answer while a person types, so a server that is slow or away offers nothing, and says nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from oraculo.core.vocabulary import Status

SERVER_TIMEOUT_S = 1.5
IDS_OFFERED = 200


def statuses(incomplete: str) -> list[str]:
    """Statuses of orchestrations that begin like this."""
    return [status.value for status in Status if status is not Status.IGNORADA and status.startswith(incomplete)]


def ids(incomplete: str) -> list[str]:
    """Ids of the newest orchestrations that begin like this."""
    from oraculo.client.client import Client
    from oraculo.errors import OraculoError
    from oraculo.settings import settings

    try:
        known = settings.load()
        with Client(known.url, known.key_for(None), timeout=SERVER_TIMEOUT_S) as client:
            found = client.list(limit=IDS_OFFERED).items
    except (OraculoError, OSError):
        return []
    return [one["correlation_id"] for one in found if one["correlation_id"].startswith(incomplete)]


Id = Annotated[str, typer.Argument(metavar="ID", autocompletion=ids)]
