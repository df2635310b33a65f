"""The health check of gRPC: what probes ask."""

from __future__ import annotations

from typing import Any

from oraculo.apps.grpc_api.calls import Caller, Deed
from oraculo.apps.grpc_api.messages import message

SERVICE = "grpc.health.v1.Health"
SERVED = frozenset(
    {
        "",
        SERVICE,
        "neural_hive.service_registry.ServiceRegistry",
        "ticket_service.TicketService",
        "orchestrator.OrchestratorStrategic",
    }
)


async def check(caller: Caller, request: Any) -> Any:
    """Say whether requests are taken: of the whole server, or of one service."""
    answer = message("grpc.health.v1.HealthCheckResponse")
    if request.service not in SERVED:
        return answer(status=answer.SERVICE_UNKNOWN)
    return answer(status=answer.SERVING if caller.oraculo.is_ready() else answer.NOT_SERVING)


DEEDS = {"Check": Deed(None, check)}
