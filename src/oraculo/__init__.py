"""Oráculo: broker-native orchestration of independent collectors and executors."""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "ApiError",
    "AsyncClient",
    "BatchRefusedError",
    "Client",
    "ConflictError",
    "NotFoundError",
    "Oraculo",
    "OraculoError",
    "Page",
    "Plan",
    "RunDetails",
    "RunEvent",
    "RunResult",
    "RunSummary",
    "ServerUnreachableError",
    "SettingsError",
    "Submitted",
    "UnavailableError",
    "WorkError",
    "Worker",
    "__version__",
]

if TYPE_CHECKING:
    from oraculo.client.async_client import AsyncClient
    from oraculo.client.client import Client
    from oraculo.client.results import Page, RunDetails, RunEvent, RunResult, RunSummary, Submitted
    from oraculo.errors import (
        ApiError,
        BatchRefusedError,
        ConflictError,
        NotFoundError,
        OraculoError,
        ServerUnreachableError,
        SettingsError,
        UnavailableError,
        WorkError,
    )
    from oraculo.plans.python.builder import Plan
    from oraculo.service import Oraculo
    from oraculo.worker.worker import Worker

_HOME = {
    "Oraculo": "oraculo.service",
    "AsyncClient": "oraculo.client.async_client",
    "Client": "oraculo.client.client",
    "Plan": "oraculo.plans.python.builder",
    "Worker": "oraculo.worker.worker",
    **dict.fromkeys(
        ("Page", "RunDetails", "RunEvent", "RunResult", "RunSummary", "Submitted"), "oraculo.client.results"
    ),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import oraculo` stays quick."""
    if name not in __all__:
        raise AttributeError(f"module 'oraculo' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME.get(name, "oraculo.errors")), name)
