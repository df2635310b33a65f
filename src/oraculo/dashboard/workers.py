"""Who consumes what, what waits where, and the brokers in between."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import brokers
from oraculo.api.health import state_of_health
from oraculo.api.serving import Running
from oraculo.api.workers import who_works
from oraculo.bootstrap import Oraculo
from oraculo.dashboard.frame import render

router = APIRouter(include_in_schema=False)


async def _values(oraculo: Oraculo) -> dict[str, Any]:
    found = who_works(oraculo)
    served: dict[str, int] = {}
    for worker in found["workers"]:
        for queue in worker["filas"]:
            served[queue] = served.get(queue, 0) + 1
    known = {one["fila"]: one for one in found["filas"]}
    for queue in (*served, *(name for name in oraculo.engine.queues if name not in known)):
        known.setdefault(queue, {"fila": queue, "aguardando": 0, "em_andamento": 0, "mais_antiga_s": None})
    assert oraculo.broker is not None
    return {
        "workers": found["workers"],
        "queues": [{**known[name], "workers": served.get(name, 0)} for name in sorted(known)],
        "tells": oraculo.broker.volatile,
        "most": max([1, *(one["aguardando"] or 0 for one in known.values())]),
        "brokers": await brokers.told(oraculo),
        "health": await state_of_health(oraculo),
    }


@router.get("/workers")
async def workers(request: Request, oraculo: Running) -> Response:
    return render(request, "workers.html", **await _values(oraculo))


@router.get("/ui/workers")
async def workers_again(request: Request, oraculo: Running) -> Response:
    return render(request, "workers_tables.html", **await _values(oraculo))
