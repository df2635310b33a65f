"""What every route begins and ends with: the running orchestrator in, JSON out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Response

from oraculo.api.access import actor_of
from oraculo.api.problems import ProblemError
from oraculo.api.waiting import Waits
from oraculo.runtime.tenant_store import TenantStore
from oraculo.service import Oraculo
from oraculo.wire import strict_json


async def running(request: Request) -> Oraculo:
    """The orchestrator as the tenant of the caller sees it, once it has started and until it stops; 503 otherwise."""
    oraculo: Oraculo = request.app.state.oraculo
    if not oraculo.is_ready():
        raise ProblemError("not_ready", "see /ready")
    return oraculo.within(actor_of(request).tenant)


Running = Annotated[Oraculo, Depends(running)]


def store_of(oraculo: Oraculo) -> TenantStore:
    """What the tenant has in the store."""
    return TenantStore(oraculo.store, oraculo.tenant)


def waits_of(request: Request) -> Waits:
    waits: Waits = request.app.state.waits
    return waits


def answered(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return raw(strict_json.dumps(document), status, headers)


def raw(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON text that is ready to be sent."""
    return Response(body, status, headers, "application/json")
