"""The processes that share the store: who they are, and until when each is known to live."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from oraculo.api import documents, paths, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["operation"], responses=problems.COMMON_RESPONSES)


def oneself(oraculo: Oraculo) -> dict[str, Any] | None:
    """Return what this process is among those that share the store; None where it is not shared."""
    member = oraculo.status().membership
    return None if member is None else {"nome": member.name, "vaga": member.slot, "epoca": member.epoch}


@router.get(
    "/replicas",
    summary="Replicas",
    description="The processes that work on the same PostgreSQL database. Each holds a lease (`ate`) by the database's "
    "clock; when it has run out, another one takes over what it owed. Empty with SQLite, which is one process's own.",
    response_class=Response,
    responses={200: answer(documents.Replicas, "The replicas")},
)
@needs(Scope.INSTALLATION_READ)
async def replicas(oraculo: Running) -> Response:
    membership = oraculo.status().membership
    document = {
        "replicas": [
            {
                "nome": one.name,
                "vaga": one.slot,
                "epoca": one.epoch,
                "desde": one.joined_at,
                "ate": one.lease_until,
                "esta": membership is not None and one.epoch == membership.epoch,
            }
            for one in await oraculo.members()
        ],
        "assumidas": 0 if membership is None else membership.rescues,
        "cercas": 0 if membership is None else membership.fenced,
    }
    return answered(document)
