"""The tasks. Each reads its arguments and asks the host of its process: no rule of an orchestration is here.

The orchestrator sends them with `ordens`, `mensagens` and `avisos`; with the arguments of their first form any program
may, to begin an orchestration from Celery.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog
from celery import Task

from oraculo.apps.celery.app import app
from oraculo.apps.celery.host import Host, process
from oraculo.engines.celery_engine.routes import ANNOUNCE
from oraculo.errors import BrokerError, BusyError, OraculoError, StoreError
from oraculo.ports.work import Work
from oraculo.runtime.answers import AnswerReader
from oraculo.wire import names, requests, strict_json

log = structlog.get_logger("oraculo.celery")

T = TypeVar("T")
ORDER_MAX_RETRIES = 3
AWAY = (StoreError, BrokerError, BusyError, TimeoutError)

# Whatever is away comes back, so no answer and no request is ever given up. Only an order is, after some tries: it is
# owed all the same, and the sweep sends it again. Hence the tasks that carry orders have a number of retries, and what
# a program begins with them is retried for ever all the same.
RETRY_POLICY: dict[str, Any] = {
    "bind": True,
    "max_retries": None,
    "retry_backoff": True,
    "retry_backoff_max": 30,
    "retry_jitter": True,
}

FOR_EVER = 2**31
ORDER_RETRY_POLICY = {**RETRY_POLICY, "max_retries": ORDER_MAX_RETRIES, "retry_kwargs": {"max_retries": FOR_EVER}}


@app.task(name="iniciar_coleta", autoretry_for=AWAY, **ORDER_RETRY_POLICY)
def iniciar_coleta(
    self: Task,
    correlation_id: str | None = None,
    fonte: str | None = None,
    parametros: dict[str, Any] | None = None,
    *,
    ordens: list[list[int]] | None = None,
) -> dict[str, Any]:
    """Publish `iniciar_coleta` to the queue of a collector."""
    if ordens is not None:
        return _perform(self, lambda host: host.publish(ordens))
    return _begin(
        self, {"correlation_id": correlation_id, "coletas": [{"fonte": fonte, "parametros": parametros or {}}]}
    )


@app.task(name="iniciar_execucao", autoretry_for=AWAY, **ORDER_RETRY_POLICY)
def iniciar_execucao(
    self: Task,
    correlation_id: str | None = None,
    executador: str | None = None,
    parametros: dict[str, Any] | None = None,
    *,
    ordens: list[list[int]] | None = None,
) -> dict[str, Any]:
    """Publish `iniciar_execucao` to the queue of an executor."""
    if ordens is not None:
        return _perform(self, lambda host: host.publish(ordens))
    wanted = {"executador": executador, "parametros": parametros or {}}
    return _begin(self, {"correlation_id": correlation_id, "execucoes": [wanted]})


@app.task(name="resultado_coleta", autoretry_for=(OraculoError, TimeoutError), **RETRY_POLICY)
def resultado_coleta(self: Task, mensagens: list[dict[str, Any]]) -> dict[str, int]:
    """Record the answers of collectors."""
    return _record(mensagens)


@app.task(name="resultado_execucao", autoretry_for=(OraculoError, TimeoutError), **RETRY_POLICY)
def resultado_execucao(self: Task, mensagens: list[dict[str, Any]]) -> dict[str, int]:
    """Record the answers of executors."""
    return _record(mensagens)


@app.task(name="notificar", autoretry_for=AWAY, **RETRY_POLICY)
def notificar(self: Task, avisos: list[list[int]]) -> dict[str, int]:
    """Send notices that an orchestration has ended."""
    return _perform(self, lambda host: host.notify(avisos))


@app.task(name="varrer", bind=True)
def varrer(self: Task) -> dict[str, int]:
    """Look after deadlines, the debts of processes that died, and tasks that were lost. Sent by beat."""
    return _unless_away(Host.sweep) or {}


@app.task(name="anunciar_filas", bind=True)
def anunciar_filas(self: Task) -> int:
    """Announce every queue to every worker. Sent by beat."""
    return _announce(_unless_away(Host.queues) or [])


def _unless_away(work: Callable[[Host], Coroutine[Any, Any, T]]) -> T | None:
    """Run it, or skip it when something is away: beat sends the same task again soon."""
    try:
        return process.call(work)
    except AWAY as error:
        log.warning("task skipped: store or broker unavailable", error=str(error) or type(error).__name__)
        return None


def _announce(queues: list[str]) -> int:
    """Tell every worker of these queues; one that misses it is told the next time."""
    if queues:
        with contextlib.suppress(Exception):
            app.control.broadcast(ANNOUNCE, arguments={"filas": queues})
    return len(queues)


def _perform(task: Task, work: Callable[[Host], Coroutine[Any, Any, int]]) -> dict[str, int]:
    try:
        return {"feitas": process.call(work)}
    except AWAY as error:
        if task.request.retries < ORDER_MAX_RETRIES:
            raise
        log.warning(
            "order given up for now; the sweep sends it again", task=task.name, error=str(error) or type(error).__name__
        )
        return {"feitas": 0}


def _begin(task: Task, document: dict[str, Any]) -> dict[str, Any]:
    """Begin an orchestration; a task that comes twice begins one, by the id of the task."""
    request = requests.parse({key: value for key, value in document.items() if value is not None})
    key = f"celery:{task.request.id}"
    accepted = process.call(lambda host: host.begin(request, key))
    return {"correlation_id": accepted.correlation_id, "novo": accepted.new}


def _record(messages: list[Any]) -> dict[str, int]:
    return process.call(lambda host: _recorded(host, messages))


async def _recorded(host: Host, messages: list[Any]) -> dict[str, int]:
    opened = [await host.opened(message) for message in messages]
    return await host.record([_work(message, host.service.answers) for message in opened])


def _work(message: Any, read: AnswerReader) -> Work:
    """A message as the orchestrator hands it over, with its origin; or an envelope as any program may send it."""
    if isinstance(message, dict) and isinstance(message.get("corpo"), str):
        work = read(message["corpo"].encode(), str(message.get("fila") or names.RESULTS))
        work.broker = str(message.get("broker") or "")
        return work
    return read(strict_json.dumps(message), names.RESULTS)
