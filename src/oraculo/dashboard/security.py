"""Who may do what, and who did what: the keys of the store, and the acts of people and keys upon the system."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.auth import asks_for_key
from oraculo.api.keys import shown
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Scope
from oraculo.dashboard.frame import render
from oraculo.ports.system_events import SystemEvent

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

EVENTS_READ, ACTS_SHOWN = 1000, 100


@router.get("/security")
@needs(Scope.AUDIT_READ)
async def security(request: Request, oraculo: Running) -> Response:
    """Keys are for administrators; an auditor sees what was done."""
    actor, now = actor_of(request), oraculo.now()
    keys = [shown(key, now) for key in await oraculo.keys.all(oraculo.tenant)] if actor.may(Scope.KEY_ADMIN) else None
    notes = {one["id"]: one["nota"] for one in keys or () if one["nota"]}
    events = await store_of(oraculo).system_events(EVENTS_READ)
    return render(
        request,
        "security.html",
        actor=actor,
        asked=asks_for_key(oraculo.settings),
        keys=keys,
        notes=notes,
        acts=[_act(event) for event in events if event.body.get("ator")][:ACTS_SHOWN],
    )


def _act(event: SystemEvent) -> dict[str, Any]:
    """One event that has an actor; what it says beside kind and actor stands as name and value."""
    said = {name: value for name, value in event.body.items() if name != "ator" and value not in (None, "", [])}
    return {"at": event.at, "kind": event.kind, "actor": event.body["ator"], "said": said}
