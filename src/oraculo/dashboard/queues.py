"""One queue: how full it was, what waits in it, and what can be done about it.

What waits is read from the journal, not from the broker: nothing is taken out, and every broker gives the same answer.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.destination_pauses import checked, listed
from oraculo.api.serving import Running, store_of
from oraculo.api.worker_views import who_works
from oraculo.core.access import Scope
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import RUN_STATUSES, Phase
from oraculo.dashboard.charts import area, rounded_up
from oraculo.dashboard.frame import render
from oraculo.dashboard.paths import run_path
from oraculo.ports.catalogue import Query
from oraculo.runtime.queue_history import LOOK_INTERVAL_S
from oraculo.service import Oraculo
from oraculo.wire import strict_json

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

RUNS_LOOKED_AT, TICKETS_SHOWN = 50, 50
TICKETS_LOOKED_AT = 2_000  # of one run
OPEN_STATUSES = tuple(status for status in RUN_STATUSES if not status.final)
_FILTERS = {"escavador_": "fonte", "executador_": "executador"}


@router.get("/queues/{queue:segment}")
@needs(Scope.SYSTEM_READ)
async def queue_page(request: Request, oraculo: Running, queue: str) -> Response:
    meant = checked(oraculo, queue)
    working = await who_works(oraculo)
    actor = actor_of(request)
    return render(
        request,
        "queue.html",
        queue=queue,
        standing=next((one for one in working["filas"] if one["fila"] == meant), None),
        served=[one["nome"] for one in working["workers"] if meant in one["filas"]],
        paused=next((one for one in listed(oraculo) if one["fila"] in (meant, None)), None),
        filter=_filter(local_name(meant)),
        waiting=await waiting(oraculo, meant) if actor.may(Scope.RUN_READ) else [],
        history=history(oraculo, meant),
        may_pause=actor.may(Scope.QUEUE_PAUSE),
        may_cancel=actor.may(Scope.RUN_CANCEL),
        shown=TICKETS_SHOWN,
    )


def _filter(queue: str) -> tuple[str, str] | None:
    """The filter of the list that names this queue; None for a queue of no worker."""
    return next(((name, queue.removeprefix(kind)) for kind, name in _FILTERS.items() if queue.startswith(kind)), None)


async def waiting(oraculo: Oraculo, queue: str) -> list[dict[str, Any]]:
    """Tickets that were sent to a queue and are not answered, of the newest open runs that use it."""
    found: list[dict[str, Any]] = []
    for one in await store_of(oraculo).find(Query(destino=queue, status=OPEN_STATUSES, limit=RUNS_LOOKED_AT)):
        state = await oraculo.engine.state(one.run) if one.total <= TICKETS_LOOKED_AT else None
        if state is not None:
            found += _sent(state, queue)
        if len(found) >= TICKETS_SHOWN:
            break
    return found[:TICKETS_SHOWN]


def _sent(state: Orchestration, queue: str) -> list[dict[str, Any]]:
    name = local_name(state.correlation_id)
    return [
        {
            "run": name,
            "path": f"{run_path(name)}?ticket={ticket_id(state.run, position)}",
            "position": position,
            "attempt": ticket.attempt,
            "since": ticket.dispatched_at,
            "asked": strict_json.loads_trusted(state.parameters(position)),
        }
        for position, ticket in enumerate(state.tickets)
        if ticket.phase in (Phase.OWED, Phase.RUNNING) and state.plan.tasks[position].queue == queue
    ]


def history(oraculo: Oraculo, queue: str) -> dict[str, Any]:
    """The last hour as charts: what waited, and what went in and out."""
    looks = oraculo.metrics.readings.history.of(queue)
    deep = rounded_up(max([1, *(one.waiting for one in looks)]))
    fast = rounded_up(max([0.1, *(max(one.sent_per_s, one.answered_per_s) for one in looks)]))
    return {
        "width": max(1, len(looks) - 1),
        "minutes": max(1, round(len(looks) * LOOK_INTERVAL_S / 60)),
        "deep": deep,
        "fast": fast,
        "waiting": area([one.waiting for one in looks], deep),
        "sent": area([one.sent_per_s for one in looks], fast),
        "answered": area([one.answered_per_s for one in looks], fast),
    }
