"""The Celery application: JSON only, late acknowledgement, queues per source and type. Its settings are Oráculo's."""

from __future__ import annotations

from typing import Any

from celery import Celery, signals

from oraculo import logs, settings
from oraculo.errors import SettingsError
from oraculo.settings import Settings, redact

RESULTS = "oraculo.resultados"
SWEEP = "oraculo.varredura"
NOTICES = "oraculo.notificacoes"
SWEEP_EVERY = 1.0  # seconds

# Without these, a worker that dies takes its tasks with it, or runs whatever somebody put into a pickle.
NEEDED = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_serializer": "json",
    "result_serializer": "json",
    "accept_content": ["json"],
}


def broker_of(chosen: Settings) -> str:
    """Where tasks travel: ORACULO_CELERY_BROKER, or the first of ORACULO_BROKER that Celery can use."""
    urls = [url.strip() for url in (chosen.celery_broker or chosen.broker).split(",")]
    for url in urls:
        if url.partition("://")[0] in ("amqp", "amqps", "pyamqp", "redis", "rediss"):
            return url.partition("?")[0] if url.startswith(("amqp", "redis")) else url
    raise SettingsError("ORACULO_CELERY_BROKER", redact(chosen.celery_broker), "amqp://… or redis://…")


def make(chosen: Settings) -> Celery:
    broker = broker_of(chosen)
    made = Celery("orquestrador_core", broker=broker, backend=chosen.celery_backend or None)
    confirmed: dict[str, Any] = {"confirm_publish": True} if "amqp" in broker.partition("://")[0] else {}
    made.conf.update(
        **NEEDED,
        task_default_queue="oraculo",
        task_ignore_result=not chosen.celery_backend,
        task_store_errors_even_if_ignored=bool(chosen.celery_backend),
        broker_transport_options=confirmed,
        broker_connection_retry_on_startup=True,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=True,
        worker_hijack_root_logger=False,
        beat_schedule={
            "varrer": {"task": "varrer", "schedule": SWEEP_EVERY, "options": {"queue": SWEEP, "expires": 10}},
        },
        beat_max_loop_interval=SWEEP_EVERY,
    )
    return made


def verify(conf: Any) -> None:
    """Somebody may have changed the configuration: what is promised would not hold any more."""
    for name, value in NEEDED.items():
        if conf[name] != value:
            raise SettingsError(name, str(conf[name]), f"{value}: tasks would be lost, or not be JSON")


app = make(settings.load())


@signals.celeryd_init.connect
def _check(conf: Any = None, **_: Any) -> None:
    verify(conf if conf is not None else app.conf)


@signals.setup_logging.connect
def _logging(**_: Any) -> None:
    chosen = settings.load()
    logs.configure(chosen.log_level, chosen.log_format)
