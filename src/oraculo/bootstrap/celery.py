"""Settings → the Celery application that tasks are sent with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oraculo import redaction
from oraculo.errors import MissingExtraError, SettingsError
from oraculo.settings.settings import Settings

if TYPE_CHECKING:
    from celery import Celery


def task_broker_of(settings: Settings) -> str:
    """Return where tasks travel: ORACULO_CELERY_BROKER, or the first of ORACULO_BROKER that Celery can use. Options in
    the latter are Oráculo's own."""
    if settings.celery.broker:
        return settings.celery.broker
    for url in settings.broker.split(","):
        if url.strip().startswith(("amqp", "redis")):
            return url.strip().partition("?")[0]
    broker = redaction.urls(settings.broker)
    raise SettingsError("ORACULO_CELERY_BROKER", "", f"amqp://… or redis://…, because ORACULO_BROKER is {broker}")


def celery_of(settings: Settings) -> Celery:
    """Return the application; MissingExtraError when Celery is not installed."""
    try:
        from oraculo.engines.celery_engine.application import make
    except ModuleNotFoundError as error:
        raise MissingExtraError("ORACULO_ENGINE=celery", "celery") from error
    return make(task_broker_of(settings), settings.celery.backend or None)
