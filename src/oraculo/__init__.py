"""Oráculo: broker-native orchestration of independent collectors and executors."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Client", "Oraculo", "WorkError", "Worker", "__version__"]

if TYPE_CHECKING:
    from oraculo.bootstrap import Oraculo
    from oraculo.client import AsyncClient, Client
    from oraculo.errors import WorkError
    from oraculo.worker import Worker

_HOME = {
    "AsyncClient": "oraculo.client",
    "Client": "oraculo.client",
    "Oraculo": "oraculo.bootstrap",
    "WorkError": "oraculo.errors",
    "Worker": "oraculo.worker",
}


def __getattr__(name: str) -> Any:
    """Imported when first used, so that `import oraculo` stays quick."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'oraculo' has no attribute {name!r}")
