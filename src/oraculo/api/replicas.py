"""The processes that share the store: who they are, and until when each is known to live."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from oraculo.api import documents, paths, problems
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.engines.local import LocalEngine

router = APIRouter(prefix=paths.API, tags=["operation"], responses=problems.COMMON)


def oneself(engine: LocalEngine) -> dict[str, Any] | None:
    """What this process is among those that share the store."""
    replica = engine.replica
    if replica is None or replica.member is None:
        return None
    member = replica.member
    return {"nome": member.name, "vaga": member.slot, "epoca": member.epoch}


@router.get(
    "/replicas",
    summary="Replicas",
    description="The processes that work on the same PostgreSQL database. Each holds a lease (`ate`) by the database's "
    "clock; when it has run out, another one takes over what it owed. Empty with SQLite, which is one process's own.",
    response_class=Response,
    responses={200: answer(documents.Replicas, "The replicas")},
)
async def replicas(oraculo: Running) -> Response:
    engine = oraculo.engine
    found = [] if engine.replica is None else await engine.replica.members()
    mine = oneself(engine)
    document = {
        "replicas": [
            {
                "nome": one.name,
                "vaga": one.slot,
                "epoca": one.epoch,
                "desde": one.joined_at,
                "ate": one.lease_until,
                "esta": mine is not None and one.epoch == mine["epoca"],
            }
            for one in found
        ],
        "assumidas": 0 if engine.replica is None else engine.replica.rescues,
        "cercas": 0 if engine.replica is None else engine.replica.fenced,
    }
    return answered(document)
