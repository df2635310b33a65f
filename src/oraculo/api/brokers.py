"""The brokers: which is published to, how each answers, what waits there; and what happened to the system itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import documents, paths, problems
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered, store_of
from oraculo.bootstrap import Oraculo
from oraculo.engines.local import LocalEngine
from oraculo.ports.store import SystemEvent
from oraculo.redaction import redact

router = APIRouter(prefix=paths.API, tags=["operation"], responses=problems.COMMON)

EVENTS = 20


def members(engine: LocalEngine) -> list[dict[str, Any]]:
    """Each broker as the last probe found it. One inside the process needs no probe."""
    broker = engine.broker
    if engine.prober is None:
        return []
    known = getattr(broker, "members", {broker.scheme: broker})
    active = {getattr(broker, "active", broker.scheme), *getattr(broker, "apart", ())}
    breakers = getattr(broker, "breakers", {})
    found = []
    for name, probe in engine.prober.found.items():
        health = known[name].health()
        waiting = {queue: backlog.waiting for queue, backlog in probe.backlogs.items() if backlog.waiting}
        found.append(
            {
                "nome": name,
                "publica": name in active,
                "conectado": health.connected,
                "ok": probe.ok if probe.ok is None else probe.ok and health.connected,
                "aberto": breakers[name].open if name in breakers else False,
                "durabilidade": probe.durability,
                "sonda_em": probe.at,
                "sonda_ms": None if probe.round_trip_s is None else round(probe.round_trip_s * 1000, 3),
                "reconexoes": health.reconnects,
                "erro": redact(probe.error or health.error) or None,
                "aguardando": waiting,
                "drenando": name not in active and any(waiting.get(intake.queue) for intake in engine.intakes),
            }
        )
    return found


@router.get(
    "/brokers",
    summary="Brokers",
    description="In order of preference: which one is published to (`publica`), how the last end-to-end probe went, "
    "what is promised of a confirmed message, what waits there, and whether one that is not published to any more is "
    "still being emptied (`drenando`). `eventos` are the latest switches. Empty with the in-process broker.",
    response_class=Response,
    responses={200: answer(documents.Brokers, "The brokers")},
)
async def brokers(oraculo: Running) -> Response:
    return answered(await told(oraculo))


async def told(oraculo: Oraculo) -> dict[str, Any]:
    events = await store_of(oraculo).system_events(EVENTS, "broker_switched")
    return {
        "brokers": members(oraculo.engine),
        "route_epoch": getattr(oraculo.engine.broker, "epoch", 0),
        "eventos": [shown(one) for one in events],
    }


class EventsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(50, ge=1, le=1000)


@router.get(
    "/system-events",
    summary="What happened to the system itself",
    description="Newest first: publishing switched to another broker (`broker_switched`), dead letters were discarded "
    "(`dead_letters_discarded`, with the reason that was given).",
    response_class=Response,
    responses={200: answer(documents.SystemEvents, "Events"), **problems.documented(422)},
)
async def system_events(oraculo: Running, query: Annotated[EventsQuery, Query()]) -> Response:
    return answered({"eventos": [shown(one) for one in await store_of(oraculo).system_events(query.limit)]})


def shown(event: SystemEvent) -> dict[str, Any]:
    return {"id": event.id, "em": event.at, "evento": event.kind, **event.body}
