"""What every route begins and ends with: the running orchestrator in, JSON out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Response

from oraculo.api.problems import ProblemError
from oraculo.api.waiting import Waits
from oraculo.bootstrap import Oraculo
from oraculo.ports.store import Store
from oraculo.wire import strict_json


async def running(request: Request) -> Oraculo:
    """The orchestrator, once it has started and until it stops; 503 otherwise."""
    oraculo: Oraculo = request.app.state.oraculo
    engine = getattr(oraculo, "engine", None)
    if engine is None or not engine.ready:
        raise ProblemError("not_ready", "see /ready")
    return oraculo


Running = Annotated[Oraculo, Depends(running)]


def store_of(oraculo: Oraculo) -> Store:
    assert oraculo.store is not None
    return oraculo.store


def waits_of(request: Request) -> Waits:
    waits: Waits = request.app.state.waits
    return waits


def answered(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return raw(strict_json.dumps(document), status, headers)


def raw(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON text that is ready to be sent."""
    return Response(body, status, headers, "application/json")
