"""The Celery application: JSON only, late acknowledgement, queues per source and type. Its settings are Oráculo's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from celery import Celery, signals

from oraculo import logs, redaction, settings
from oraculo.errors import SettingsError
from oraculo.settings import Settings

SWEEP = "oraculo.varredura"
NOTICES = "oraculo.notificacoes"
SWEEP_EVERY = 1.0  # seconds
ANNOUNCE_EVERY = 5.0
VISIBLE_AGAIN = (
    60  # seconds after which Redis gives a task of a dead worker to another; no task, no retry takes as long
)

# Without these, a worker that dies takes its tasks with it, or runs whatever somebody put into a pickle.
NEEDED = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_serializer": "json",
    "result_serializer": "json",
    "accept_content": ["json"],
}
TRANSPORT: dict[str, dict[str, Any]] = {
    "amqp": {"confirm_publish": True},
    "redis": {
        "visibility_timeout": VISIBLE_AGAIN,
        "socket_connect_timeout": 5,
        "socket_timeout": 30,
        "socket_keepalive": True,
    },
}


def broker_of(chosen: Settings) -> str:
    """Where tasks travel: ORACULO_CELERY_BROKER, or the first of ORACULO_BROKER that Celery can use. Options in the
    latter are Oráculo's own."""
    if chosen.celery_broker:
        return chosen.celery_broker
    for url in chosen.broker.split(","):
        if url.strip().startswith(("amqp", "redis")):
            return url.strip().partition("?")[0]
    raise SettingsError(
        "ORACULO_CELERY_BROKER", "", f"amqp://… or redis://…, because ORACULO_BROKER is {redaction.urls(chosen.broker)}"
    )


def make(chosen: Settings) -> Celery:
    broker = broker_of(chosen)
    made = Celery("orquestrador_core", broker=broker, backend=chosen.celery_backend or None)
    made.conf.update(
        **NEEDED,
        task_default_queue="oraculo",
        task_ignore_result=not chosen.celery_backend,
        broker_transport_options=TRANSPORT["amqp" if broker.startswith("amqp") else "redis"],
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_prefetch_multiplier=1,
        worker_autoscaler="oraculo.engines.celery.autoscale:Autoscaler",
        worker_cancel_long_running_tasks_on_connection_loss=False,  # what is done twice counts once
        beat_scheduler="celery.beat:Scheduler",  # no file: nothing to remember, nothing that a crash could spoil
        beat_schedule={
            "varrer": {"task": "varrer", "schedule": SWEEP_EVERY, "options": {"queue": SWEEP, "expires": 10}},
            "anunciar_filas": {
                "task": "anunciar_filas",
                "schedule": ANNOUNCE_EVERY,
                "options": {"queue": SWEEP, "expires": 10},
            },
        },
        beat_max_loop_interval=SWEEP_EVERY,
    )
    return made


def verify(made: Celery) -> None:
    """Somebody may have changed the configuration: what is promised would not hold any more."""
    for name, value in NEEDED.items():
        if made.conf[name] != value:
            raise SettingsError(name, str(made.conf[name]), f"{value}: tasks would be lost, or not be JSON")
    for name, task in made.tasks.items():
        if not name.startswith("celery.") and not (task.acks_late and task.reject_on_worker_lost):
            raise SettingsError(f"acks_late, reject_on_worker_lost of {name}", "False", "True: it would be lost")


def check_pool(pool: object) -> None:
    """An event loop in a thread of its own cannot live among greenlets."""
    if any(kind in str(pool) for kind in ("gevent", "eventlet")):
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


@signals.celeryd_init.connect
def _before_it_starts(options: dict[str, Any] | None = None, **_: Any) -> None:
    """Celery passes over exceptions of signal handlers, but not over this one."""
    chosen = settings.load()
    logs.configure(chosen.log_level, chosen.log_format)
    try:
        settings.for_celery(chosen)
        check_pool((options or {}).get("pool_cls"))
        verify(app)
    except SettingsError as error:
        raise SystemExit(f"oraculo: {error}") from None
