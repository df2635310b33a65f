"""Who consumes what, what waits where, and the brokers in between."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import brokers
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.destination_pauses import checked, listed
from oraculo.api.health import state_of_health
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running
from oraculo.api.workers import who_works
from oraculo.core.access import Scope
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.ports.destination_pauses import EVERYTHING
from oraculo.service import Oraculo
from oraculo.wire import names

EMPTY_QUEUE = {
    "aguardando": 0,
    "em_andamento": 0,
    "mais_antiga_s": None,
    "enviadas_por_s": 0.0,
    "respondidas_por_s": 0.0,
}
router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


async def _values(oraculo: Oraculo) -> dict[str, Any]:
    found = who_works(oraculo)
    served: dict[str, int] = {}
    for worker in found["workers"]:
        for queue in worker["filas"]:
            served[queue] = served.get(queue, 0) + 1
    known = {one["fila"]: one for one in found["filas"]}
    for queue in (*served, *(name for name in oraculo.queues() if name not in known)):
        known.setdefault(queue, {"fila": queue, **EMPTY_QUEUE, "consumidores": served.get(queue, 0)})
    return {
        "workers": found["workers"],
        "queues": [{**known[name], "workers": known[name]["consumidores"]} for name in sorted(known)],
        "ours": frozenset((names.REQUESTS, names.RESULTS)) | oraculo.consumers.queues,
        "tells": oraculo.broker.traits.volatile,
        "most": max([1, *(one["aguardando"] or 0 for one in known.values())]),
        "brokers": await brokers.told(oraculo),
        "pauses": listed(oraculo),
        "health": await state_of_health(oraculo),
    }


@router.post("/ui/destinations/{what}")
@needs(Scope.QUEUE_PAUSE)
async def act(request: Request, oraculo: Running, what: str, fields: Form) -> Response:
    """Pause a destination, or let orders go there again; without a queue: all of them."""
    queue, actor, book = fields.get("fila"), actor_of(request), oraculo.pauses.destinations
    if what not in ("pause", "resume"):
        raise ProblemError("not_found", "allowed: pause, resume")
    if not queue and not actor.may(Scope.INSTALLATION_PAUSE):
        wanted = Scope.INSTALLATION_PAUSE
        raise ProblemError("forbidden", f"the scope {wanted} is needed", scope=wanted)
    change = book.pause if what == "pause" else book.resume
    await change(checked(oraculo, queue, "fila") if queue else EVERYTHING, fields.get("motivo")[:1000], actor)
    return elsewhere(request, "/workers")


@router.get("/workers")
@needs(Scope.SYSTEM_READ)
async def workers(request: Request, oraculo: Running) -> Response:
    return render(request, "workers.html", **await _values(oraculo))


@router.get("/ui/workers")
@needs(Scope.SYSTEM_READ)
async def workers_again(request: Request, oraculo: Running) -> Response:
    return render(request, "workers_tables.html", **await _values(oraculo))
