"""The tasks. Each reads its arguments, asks the host of its process, and is done: no rule of an orchestration is here.

The orchestrator sends them with `ordens`, `mensagens` and `avisos`; with the arguments of their first form anybody may,
to begin an orchestration from Celery.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog
from celery import Task

from oraculo.engines.celery.app import app
from oraculo.engines.celery.host import Host, process
from oraculo.errors import BrokerError, BusyError, OraculoError, StoreError
from oraculo.runtime.intake import result_work
from oraculo.runtime.work import Work
from oraculo.wire import names, requests, strict_json

log = structlog.get_logger("oraculo.celery")

T = TypeVar("T")
ORDER_TRIES = 3
AWAY = (StoreError, BrokerError, BusyError, TimeoutError)

# Whatever is away comes back, so nothing is ever given up: neither an answer, nor an orchestration that somebody wants.
# Only an order is, after some tries: it is owed all the same, and the sweep sends it again.
AGAIN: dict[str, Any] = {
    "bind": True,
    "max_retries": None,
    "retry_backoff": True,
    "retry_backoff_max": 30,
    "retry_jitter": True,
}


@app.task(name="iniciar_coleta", autoretry_for=AWAY, **AGAIN)
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


@app.task(name="iniciar_execucao", autoretry_for=AWAY, **AGAIN)
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


@app.task(name="resultado_coleta", autoretry_for=(OraculoError, TimeoutError), **AGAIN)
def resultado_coleta(self: Task, mensagens: list[dict[str, Any]]) -> dict[str, int]:
    """Record the answers of collectors."""
    return _record(mensagens)


@app.task(name="resultado_execucao", autoretry_for=(OraculoError, TimeoutError), **AGAIN)
def resultado_execucao(self: Task, mensagens: list[dict[str, Any]]) -> dict[str, int]:
    """Record the answers of executors."""
    return _record(mensagens)


@app.task(name="notificar", autoretry_for=AWAY, **AGAIN)
def notificar(self: Task, avisos: list[list[int]]) -> dict[str, int]:
    """Tell who asked for it that an orchestration has ended."""
    return _perform(self, lambda host: host.notify(avisos))


@app.task(name="varrer", bind=True)
def varrer(self: Task) -> dict[str, int]:
    """Deadlines, the debts of processes that died, tasks that were lost. Sent by beat."""
    return _now_and_then(Host.sweep) or {}


@app.task(name="anunciar_filas", bind=True)
def anunciar_filas(self: Task) -> int:
    """Every worker hears of every queue. Sent by beat."""
    return _now_and_then(Host.announce) or 0


def _now_and_then(work: Callable[[Host], Coroutine[Any, Any, T]]) -> T | None:
    """What comes again soon anyway."""
    try:
        return process.call(work)
    except AWAY as error:
        log.warning("not now", why=str(error) or type(error).__name__)
        return None


def _perform(task: Task, work: Callable[[Host], Coroutine[Any, Any, int]]) -> dict[str, int]:
    try:
        return {"feitas": process.call(work)}
    except AWAY as error:
        if task.request.retries < ORDER_TRIES:
            raise
        log.warning("given up for now", task=task.name, why=str(error) or type(error).__name__)
        return {"feitas": 0}


def _begin(task: Task, document: dict[str, Any]) -> dict[str, Any]:
    """A task that comes twice begins one orchestration: its own id tells."""
    request = requests.parse({key: value for key, value in document.items() if value is not None})
    accepted = process.call(lambda host: host.reception.accept(request, f"celery:{task.request.id}"))
    return {"correlation_id": accepted.correlation_id, "novo": accepted.new}


def _record(messages: list[Any]) -> dict[str, int]:
    works = [_work(message) for message in messages]
    return process.call(lambda host: host.record(works))


def _work(message: Any) -> Work:
    """A message as the orchestrator hands it over, with where it came from; or an envelope as anybody may send it."""
    if isinstance(message, dict) and isinstance(message.get("corpo"), str):
        work = result_work(message["corpo"].encode(), str(message.get("fila") or names.RESULTS))
        work.broker = str(message.get("broker") or "")
        return work
    return result_work(strict_json.dumps(message), names.RESULTS)
