"""Who may do what, and who did what: the keys of the store, and the acts of people and keys upon the system."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.credentials import asks_for_key
from oraculo.api.keys import shown
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Scope
from oraculo.dashboard.frame import render
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.users import LocalUser
from oraculo.runtime.local_users import user_of_owner
from oraculo.runtime.user_sessions import user_of_text
from oraculo.service import Oraculo

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

EVENTS_READ, ACTS_SHOWN, SESSIONS_SHOWN = 1000, 100, 200


@router.get("/security")
@needs(Scope.AUDIT_READ)
async def security(request: Request, oraculo: Running) -> Response:
    """Keys are for administrators; an auditor sees what was done."""
    actor, now = actor_of(request), oraculo.now()
    keys = [shown(key, now) for key in await oraculo.keys.all(oraculo.tenant)] if actor.may(Scope.KEY_ADMIN) else None
    notes = {one["id"]: one["nota"] for one in keys or () if one["nota"]}
    events = await store_of(oraculo).system_events(EVENTS_READ)
    administers = actor.may(Scope.KEY_ADMIN)
    return render(
        request,
        "security.html",
        actor=actor,
        asked=asks_for_key(oraculo.settings),
        keys=keys,
        notes=notes,
        users=await _users(oraculo) if administers else None,
        sessions=await _sessions(oraculo, {one["id"] for one in keys or ()}) if administers else None,
        acts=[_act(event) for event in events if event.body.get("ator")][:ACTS_SHOWN],
    )


async def _users(oraculo: Oraculo) -> list[LocalUser] | None:
    """People of the caller's tenant who log in with a password; None where there are none."""
    if oraculo.users is None:
        return None
    return [one for one in await oraculo.users.all() if one.tenant == oraculo.tenant]


async def _sessions(oraculo: Oraculo, keys: set[str]) -> list[tuple[str, str, datetime]]:
    """(how they came in, who, until when) of browsers of the caller's tenant that are logged in with more than the key
    of the settings, which is in no store."""
    found: list[tuple[str, str, datetime]] = []
    for owner, until in await oraculo.store.open_sessions(oraculo.now(), SESSIONS_SHOWN):
        name, user = user_of_owner(owner), user_of_text(owner)
        if name is not None:
            known = await oraculo.users.actor_of(name) if oraculo.users is not None else None
            if known is not None and known.tenant == oraculo.tenant:
                found.append(("user", name, until))
        elif user is not None:
            if user.tenant == oraculo.tenant:
                found.append(("provider", user.id, until))
        elif owner in keys:
            found.append(("key", owner, until))
    return found


def _act(event: SystemEvent) -> dict[str, Any]:
    """One event that has an actor; what it says beside kind and actor stands as name and value."""
    said = {name: value for name, value in event.body.items() if name != "ator" and value not in (None, "", [])}
    return {"at": event.at, "kind": event.kind, "actor": event.body["ator"], "said": said}
