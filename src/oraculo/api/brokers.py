"""The brokers: which is published to, how each answers, what waits there; and what happened to the system itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import documents, paths, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered, store_of
from oraculo.core.access import Scope
from oraculo.core.tenants import DEFAULT_TENANT, tenant_of
from oraculo.ports.broker_group import group_of
from oraculo.ports.system_events import SystemEvent
from oraculo.redaction import redact
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["operation"], responses=problems.COMMON_RESPONSES)

SYSTEM_EVENTS_SHOWN = 20


def members(oraculo: Oraculo) -> list[dict[str, Any]]:
    """Each broker as the last probe found it. One inside the process needs no probe; other tenants than `default` are
    shown none."""
    prober = oraculo.prober
    if prober is None or oraculo.tenant != DEFAULT_TENANT:
        return []
    group = group_of(oraculo.broker)
    active = {group.active, *group.apart}
    found = []
    for name, probe in prober.found.items():
        health = group.members[name].health()
        waiting = {
            queue: backlog.waiting
            for queue, backlog in probe.backlogs.items()
            if backlog.waiting and tenant_of(queue) == oraculo.tenant
        }
        found.append(
            {
                "nome": name,
                "publica": name in active,
                "conectado": health.connected,
                "ok": probe.ok if probe.ok is None else probe.ok and health.connected,
                "aberto": name in group.breakers and group.breakers[name].open,
                "durabilidade": probe.durability,
                "sonda_em": probe.at,
                "sonda_ms": None if probe.round_trip_s is None else round(probe.round_trip_s * 1000, 3),
                "reconexoes": health.reconnects,
                "erro": redact(probe.error or health.error) or None,
                "aguardando": waiting,
                "drenando": name not in active and any(waiting.get(one.queue) for one in oraculo.consumers),
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
@needs(Scope.INSTALLATION_READ)
async def brokers(oraculo: Running) -> Response:
    return answered(await told(oraculo))


async def told(oraculo: Oraculo) -> dict[str, Any]:
    events = await store_of(oraculo).system_events(SYSTEM_EVENTS_SHOWN, "broker_switched")
    return {
        "brokers": members(oraculo),
        "route_epoch": group_of(oraculo.broker).epoch,
        "eventos": [shown(one) for one in events],
    }


class EventsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: int = Field(50, ge=1, le=1000)


@router.get(
    "/system-events",
    summary="What happened to the system itself",
    description="Newest first: publishing switched to another broker (`broker_switched`), dead letters were discarded "
    "(`dead_letters_discarded`, with the reason that was given), a key was made, rotated or revoked (`key_created`, "
    "`key_rotated`, `key_revoked`), the key of tokens was replaced (`token_key_rotated`), an orchestration or a "
    "destination was paused or resumed (`orchestration_paused`, `destination_paused`), and by whom.",
    response_class=Response,
    responses={200: answer(documents.SystemEvents, "Events"), **problems.documented(422)},
)
@needs(Scope.SYSTEM_READ)
async def system_events(oraculo: Running, query: Annotated[EventsQuery, Query()]) -> Response:
    return answered({"eventos": [shown(one) for one in await store_of(oraculo).system_events(query.limit)]})


def shown(event: SystemEvent) -> dict[str, Any]:
    return {"id": event.id, "em": event.at, "evento": event.kind, **event.body}
