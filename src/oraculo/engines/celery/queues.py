"""A Celery worker that was not told which queues to take (`-Q`) takes all, also those of sources that appear later.

Whoever uses a queue for the first time says so to every worker. A word may be missed, so all are said now and then.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from celery import signals
from celery.worker.control import control_command

from oraculo import settings
from oraculo.engines.celery import engine  # noqa: F401  (likewise)
from oraculo.engines.celery.app import NOTICES, SWEEP
from oraculo.engines.celery.routes import PREFIX, results_queue
from oraculo.errors import OraculoError
from oraculo.parts import broker_of, store_of

log = structlog.get_logger("oraculo.celery")

LOOK = 10.0  # seconds that the store may take to answer
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
    """Take from these queues too, unless this worker has its own. Later: to wait for the broker's answer in the middle
    of a message of the broker can be for ever."""
    state.consumer.call_soon(_take, state.consumer, filas)
    return {"ok": filas}


def _take(consumer: Any, queues: list[str]) -> None:
    if consumer.app.amqp.queues._consume_from is None and consumer.task_consumer is not None:
        for queue in queues:
            if queue not in _excluded and not consumer.task_consumer.consuming_from(queue):
                consumer.add_task_queue(queue)


def _look_up() -> list[str]:
    """Those that are known already. Before the processes are forked: nothing stays open."""
    try:
        return [PREFIX + queue for queue in asyncio.run(_stored())]
    except (OraculoError, OSError) as error:
        log.warning("the queues cannot be looked up; they will be announced", error=str(error))
        return []


async def _stored() -> list[str]:
    chosen = settings.load()
    broker_of(chosen.broker)  # its client is imported before the processes are forked: they begin much faster
    async with asyncio.timeout(LOOK), store_of(chosen.store) as store:
        return await store.queues()
