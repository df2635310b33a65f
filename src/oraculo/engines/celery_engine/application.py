"""The Celery application: JSON only, late acknowledgement. Built the same way to send and to run tasks."""

from __future__ import annotations

from typing import Any

from celery import Celery

from oraculo.errors import SettingsError

TASK_LEASE_S = 60  # after it Redis gives a task of a dead worker to another; no task, no retry takes as long

# Without these, a worker that dies takes its tasks with it, or runs what a stranger put into a pickle.
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
        "visibility_timeout": TASK_LEASE_S,
        "socket_connect_timeout": 5,
        "socket_timeout": 30,
        "socket_keepalive": True,
    },
}


def make(broker: str, backend: str | None = None) -> Celery:
    """Return an application that sends tasks over this broker, and keeps results where there is a `backend`."""
    made = Celery("orquestrador_core", broker=broker, backend=backend)
    made.conf.update(
        **NEEDED,
        task_default_queue="oraculo",
        task_ignore_result=backend is None,
        broker_transport_options=TRANSPORT["amqp" if broker.startswith("amqp") else "redis"],
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
    )
    return made


def verify(made: Celery) -> None:
    """Raise SettingsError when the configuration was changed so that what is promised would not hold any more."""
    for name, value in NEEDED.items():
        if made.conf[name] != value:
            raise SettingsError(name, str(made.conf[name]), f"{value}: tasks would be lost, or not be JSON")
    for name, task in made.tasks.items():
        if not name.startswith("celery.") and not (task.acks_late and task.reject_on_worker_lost):
            raise SettingsError(f"acks_late, reject_on_worker_lost of {name}", "False", "True: it would be lost")
