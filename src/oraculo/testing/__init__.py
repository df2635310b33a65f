"""The test kit: a user's own plan and worker functions on the real engine, in worlds that one seed decides.

rates.py          which faults there are, and how often
broker.py         the model broker that loses, doubles and delays
process.py        the orchestrator: one life after another over one store
workers.py        a user's worker: one life after another on the broker
world.py          what a test may ask of a world
seeds.py          one seed, or many
pytest_plugin.py  the fixture `oraculo_check`
"""

from typing import TYPE_CHECKING, Any

__all__ = ["FaultRates", "KitWorld", "SeedFailedError", "SeedsReport", "WorkerCall", "WorldOutcome", "check", "run"]

if TYPE_CHECKING:
    from oraculo.testing.rates import FaultRates
    from oraculo.testing.seeds import SeedFailedError, SeedsReport, WorldOutcome, check, run
    from oraculo.testing.workers import WorkerCall
    from oraculo.testing.world import KitWorld

_HOME = {"FaultRates": "rates", "WorkerCall": "workers", "KitWorld": "world"}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: pytest loads this package in every project that has Oráculo installed."""
    if name not in __all__:
        raise AttributeError(f"module 'oraculo.testing' has no attribute {name!r}")
    from importlib import import_module

    from oraculo.errors import MissingExtraError

    try:
        return getattr(import_module(f"oraculo.testing.{_HOME.get(name, 'seeds')}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("oraculo"):
            raise
        raise MissingExtraError("oraculo.testing", "server") from error
