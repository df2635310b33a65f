"""Who consumes what, what waits where, and the brokers in between."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import brokers
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.breakers import open_breakers
from oraculo.api.destination_pauses import checked, listed
from oraculo.api.health import state_of_health
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running
from oraculo.api.worker_views import who_works
from oraculo.core.access import Scope
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.dashboard.attention import notice_topics
from oraculo.dashboard.charts import spark
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.errors import UnknownIdError
from oraculo.ports.destination_pauses import EVERYTHING
from oraculo.service import Oraculo
from oraculo.wire import names

EMPTY_QUEUE = {
    "aguardando": 0,
    "em_andamento": 0,
    "mais_antiga_s": None,
    "enviadas_por_s": 0.0,
    "respondidas_por_s": 0.0,
    "trilha": None,
}
DOING_SHOWN_WORKERS, DOING_SHOWN_TICKETS = 50, 2
WORKERS_SHOWN = 200  # one by one; the command and the API list all
router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


async def _values(oraculo: Oraculo) -> dict[str, Any]:
    found = await who_works(oraculo)
    served: dict[str, int] = {}
    for worker in found["workers"]:
        for queue in worker["filas"]:
            served[queue] = served.get(queue, 0) + 1
    known = {one["fila"]: one for one in found["filas"]}
    for queue in (*served, *(name for name in oraculo.queues() if name not in known)):
        known.setdefault(queue, {"fila": queue, **EMPTY_QUEUE, "consumidores": served.get(queue, 0)})
    shown = found["workers"][:WORKERS_SHOWN]
    return {
        "workers": shown,
        "doing": await _doing(oraculo, shown),
        "total": len(found["workers"]),
        "more": max(0, len(found["workers"]) - WORKERS_SHOWN),
        "queues": [
            {**known[name], "workers": known[name]["consumidores"], "spark": _spark(oraculo, name)}
            for name in sorted(known)
        ],
        "paused": {one["fila"] for one in listed(oraculo)},
        "trails": oraculo.trails is not None,
        "ours": frozenset((names.REQUESTS, names.RESULTS)) | oraculo.consumers.queues,
        "notices": notice_topics(oraculo),
        "tells": oraculo.broker.traits.volatile,
        "most": max([1, *(one["aguardando"] or 0 for one in known.values())]),
        "brokers": await brokers.told(oraculo),
        "pauses": listed(oraculo),
        "breakers": open_breakers(oraculo),
        "health": await state_of_health(oraculo),
    }


def _spark(oraculo: Oraculo, queue: str) -> tuple[int, str]:
    """How many waited in the last hour as a small line: its width, and its points."""
    looks = oraculo.metrics.readings.history.of(queue)
    return max(1, len(looks) - 1), spark(one.waiting for one in looks)


async def _doing(oraculo: Oraculo, workers: list[dict[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """Name of a worker → (run, task) of what it does now; of the first workers, and the first few of each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for one in workers[:DOING_SHOWN_WORKERS]:
        for now in one["executando"][:DOING_SHOWN_TICKETS]:
            parsed = parse_ticket_id(now["ticket_id"])
            state = None if parsed is None else await oraculo.engine.state(parsed[0])
            if parsed is None or state is None or parsed[1] >= len(state.plan.tasks):
                continue
            if tenant_of(state.correlation_id) == oraculo.tenant:
                task = state.plan.tasks[parsed[1]].name
                found.setdefault(one["nome"], []).append((local_name(state.correlation_id), task))
    return found


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
    return elsewhere(request, fields.get("back") or "/workers")


@router.post("/ui/breakers/probe")
@needs(Scope.QUEUE_PAUSE)
async def probe(request: Request, oraculo: Running, fields: Form) -> Response:
    """Let the next probe of a destination go now."""
    queue = checked(oraculo, fields.get("fila"), "fila")
    if oraculo.breakers is not None:
        await oraculo.breakers.probe_now(queue, actor_of(request))
    return elsewhere(request, "/workers")


@router.post("/ui/workers/{what}")
@needs(Scope.QUEUE_PAUSE)
async def drain(request: Request, oraculo: Running, what: str, fields: Form) -> Response:
    """Give a worker nothing more, or let it work again."""
    book, name = oraculo.registry, fields.get("worker")
    if what not in ("drain", "resume"):
        raise ProblemError("not_found", "allowed: drain, resume")
    change = book.drain if what == "drain" else book.resume
    if not await change(in_tenant(oraculo.tenant, name), fields.get("motivo")[:1000], actor_of(request)):
        raise UnknownIdError("worker", name)
    return elsewhere(request, "/workers")


@router.get("/workers")
@needs(Scope.SYSTEM_READ)
async def workers(request: Request, oraculo: Running) -> Response:
    return render(request, "workers.html", **await _values(oraculo))


@router.get("/ui/workers")
@needs(Scope.SYSTEM_READ)
async def workers_again(request: Request, oraculo: Running) -> Response:
    return render(request, "workers_tables.html", **await _values(oraculo))
