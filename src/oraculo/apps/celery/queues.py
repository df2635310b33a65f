"""A Celery worker that was not told which queues to take (`-Q`) takes all, also those of sources that appear later.

A process that uses a queue for the first time announces it to every worker. An announcement may be missed, so beat has
all of them announced from time to time.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from celery import signals
from celery.worker.control import control_command

from oraculo.bootstrap.adapters import broker_of, store_of
from oraculo.engines.celery_engine import engine  # noqa: F401  (imported before the processes are forked)
from oraculo.engines.celery_engine.routes import NOTICES, PREFIX, SWEEP, results_queue
from oraculo.errors import OraculoError
from oraculo.settings import settings

log = structlog.get_logger("oraculo.celery")

STORE_TIMEOUT_S = 10.0
ALWAYS = (SWEEP, NOTICES, results_queue("resultado_coleta"), results_queue("resultado_execucao"))


_excluded: set[str] = set()  # with -X


@signals.celeryd_init.connect
def _before_it_starts(options: dict[str, Any] | None = None, **_: Any) -> None:
    _excluded.update((options or {}).get("exclude_queues") or ())


@signals.celeryd_after_setup.connect
def _at_start(instance: Any, **_: Any) -> None:
    queues = instance.app.amqp.queues
    if queues._consume_from is None:
        for queue in (*ALWAYS, *_look_up()):
            if queue not in _excluded:
                queues.select_add(queue)


@control_command(args=[("filas", list)], signature="<filas>")
def oraculo_filas(state: Any, filas: list[str]) -> dict[str, list[str]]:
    """Take from these queues too, unless this worker has its own. Not at once: waiting for the broker's answer in the
    middle of a message of the broker could last for ever."""
    state.consumer.call_soon(_take, state.consumer, filas)
    return {"ok": filas}


def _take(consumer: Any, queues: list[str]) -> None:
    if consumer.app.amqp.queues._consume_from is None and consumer.task_consumer is not None:
        for queue in queues:
            if queue not in _excluded and not consumer.task_consumer.consuming_from(queue):
                consumer.add_task_queue(queue)


def _look_up() -> list[str]:
    """Return the queues that are known already. Nothing stays open: the processes are forked afterwards."""
    try:
        return [PREFIX + queue for queue in asyncio.run(_stored())]
    except (OraculoError, OSError) as error:
        log.warning("queues not read: store unavailable; they will be announced", error=str(error))
        return []


async def _stored() -> list[str]:
    chosen = settings.load()
    broker_of(chosen.broker)  # its client is imported before the processes are forked: they begin much faster
    async with asyncio.timeout(STORE_TIMEOUT_S), store_of(chosen.store, may_migrate=chosen.migrate_at_start) as store:
        return await store.queues()
