"""The name under which Celery finds the application (oraculo/apps/celery); the engine is oraculo/engines/celery_engine.

celery -A oraculo.engines.celery worker
celery -A oraculo.engines.celery beat
"""

from oraculo.errors import MissingExtraError

try:
    import celery as _celery  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("ORACULO_ENGINE=celery", "celery") from error

from oraculo.apps.celery import queues, tasks  # noqa: F401  (registered with the app)
from oraculo.apps.celery.app import app

__all__ = ["app"]
