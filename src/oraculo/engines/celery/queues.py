"""A Celery worker that was not told which queues to take (`-Q`) takes all, also those of sources that appear later.

Whoever uses a queue for the first time says so to every worker; and each looks into the store now and then, because a
word may be missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import structlog
from celery import bootsteps, signals
from celery.worker.control import control_command

from oraculo import settings
from oraculo.bootstrap import store_of
from oraculo.engines.celery.app import NOTICES, SWEEP, app
from oraculo.engines.celery.routes import PREFIX, results_queue
from oraculo.errors import OraculoError

log = structlog.get_logger("oraculo.celery")

LOOK = 5.0  # seconds between two looks into the store
ALWAYS = (SWEEP, NOTICES, results_queue("resultado_coleta"), results_queue("resultado_execucao"))


@control_command(args=[("fila", str)], signature="<fila>")
def oraculo_fila(state: Any, fila: str) -> dict[str, str]:
    """Take from one more queue, unless this worker has its own."""
    _take(state.consumer, [fila])
    return {"ok": fila}


@signals.celeryd_after_setup.connect
def _at_start(instance: Any, **_: Any) -> None:
    """Those that are known already: to add them later, while the consumer is being made, would be too early for it."""
    queues = instance.app.amqp.queues
    if queues._consume_from is None:
        for queue in (*ALWAYS, *_look_up()):
            queues.add(queue)


class Queues(bootsteps.StartStopStep):  # type: ignore[misc]
    """While the worker consumes, it looks for more."""

    requires = ("celery.worker.consumer:Tasks",)

    def start(self, consumer: Any) -> None:
        self._timer = consumer.timer.call_repeatedly(LOOK, lambda: _take(consumer, _look_up()))

    def stop(self, _consumer: Any) -> None:
        self._timer.cancel()


def _look_up() -> list[str]:
    try:
        return [PREFIX + queue for queue in asyncio.run(_stored())]
    except (OraculoError, OSError) as error:
        log.warning("the queues cannot be looked up", error=str(error))
        return []


async def _stored() -> list[str]:
    async with store_of(settings.load().store) as store:
        return await store.queues()


def _take(consumer: Any, queues: Iterable[str]) -> None:
    if consumer.app.amqp.queues._consume_from is not None:
        return  # it was told which
    for queue in queues:
        if not consumer.task_consumer.consuming_from(queue):
            consumer.add_task_queue(queue)


app.steps["consumer"].add(Queues)
