"""The engine `celery`: commands and deeds travel as Celery tasks; the core, the store and the messages are the same.

celery -A oraculo.engines.celery worker
celery -A oraculo.engines.celery beat
"""

from oraculo.errors import MissingExtraError

try:
    import celery as _celery  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("ORACULO_ENGINE=celery", "celery") from error

from oraculo.engines.celery import queues, tasks  # noqa: F401  (registered with the app)
from oraculo.engines.celery.app import app

__all__ = ["app"]
