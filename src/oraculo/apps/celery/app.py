"""The Celery application with its schedule, made of Oráculo's settings when this module is imported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from celery import Celery, signals

from oraculo.apps.celery import log_lines
from oraculo.bootstrap.celery import celery_of
from oraculo.engines.celery_engine.application import verify
from oraculo.engines.celery_engine.routes import SWEEP
from oraculo.errors import SettingsError
from oraculo.settings import settings
from oraculo.settings.settings import Settings

SWEEP_INTERVAL_S = 1.0
ANNOUNCE_INTERVAL_S = 5.0
EXPIRES_S = 10  # a task of beat that is older is dropped: the next one is on its way
GREENLET_POOLS = ("gevent", "eventlet")


def make(chosen: Settings) -> Celery:
    """Return the application of a Celery worker, or of beat."""
    made = celery_of(chosen)
    options = {"queue": SWEEP, "expires": EXPIRES_S}
    made.conf.update(
        worker_prefetch_multiplier=1,
        worker_autoscaler="oraculo.apps.celery.autoscale:Autoscaler",
        worker_cancel_long_running_tasks_on_connection_loss=False,  # what is done twice counts once
        beat_scheduler="celery.beat:Scheduler",  # no file: nothing to remember, nothing that a crash could spoil
        beat_schedule={
            "varrer": {"task": "varrer", "schedule": SWEEP_INTERVAL_S, "options": options},
            "anunciar_filas": {"task": "anunciar_filas", "schedule": ANNOUNCE_INTERVAL_S, "options": options},
        },
        beat_max_loop_interval=SWEEP_INTERVAL_S,
    )
    return made


def check_pool(pool: object) -> None:
    """Raise SettingsError for a pool of greenlets: an event loop in a thread of its own cannot live among them."""
    if any(kind in str(pool) for kind in GREENLET_POOLS):
        raise SettingsError("--pool", str(pool), "prefork, threads or solo")


def _made() -> Celery:
    try:
        return make(settings.load())
    except SettingsError as error:
        program = Path(sys.argv[0])
        if "celery" in (program.name, program.parent.name):  # it would show a traceback
            raise SystemExit(f"oraculo: {error}") from None
        raise


app = _made()
log_lines.follow(app, settings.load)


@signals.celeryd_init.connect
def _before_it_starts(options: dict[str, Any] | None = None, **_: Any) -> None:
    """Celery passes over exceptions of signal handlers, but not over this one."""
    chosen = settings.load()
    try:
        settings.for_celery(chosen)
        check_pool((options or {}).get("pool_cls"))
        verify(app)
    except SettingsError as error:
        raise SystemExit(f"oraculo: {error}") from None
