"""The tasks. Each reads its arguments, asks the host of its process, and is done: no rule of an orchestration is here.

The orchestrator sends them with `ordens`, `mensagens` and `avisos`; with the arguments of their first form anybody may,
to begin an orchestration from Celery.
"""

from __future__ import annotations

from typing import Any

from celery import Task

from oraculo.engines.celery.app import app
from oraculo.engines.celery.host import Host, process
from oraculo.errors import BrokerError, StoreError
from oraculo.runtime.intake import result_work
from oraculo.runtime.work import Work
from oraculo.wire import names, requests, strict_json

# Whatever is away comes back. An order that is given up is owed all the same, and the sweep sends it again; an answer
# is never given up.
AGAIN: dict[str, Any] = {
    "bind": True,
    "autoretry_for": (StoreError, BrokerError, TimeoutError),
    "retry_backoff": True,
    "retry_backoff_max": 30,
    "retry_jitter": True,
}


@app.task(name="iniciar_coleta", max_retries=3, **AGAIN)
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
        return {"publicadas": process.call(lambda host: host.publish(ordens))}
    return _begin({"correlation_id": correlation_id, "coletas": [{"fonte": fonte, "parametros": parametros or {}}]})


@app.task(name="iniciar_execucao", max_retries=3, **AGAIN)
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
        return {"publicadas": process.call(lambda host: host.publish(ordens))}
    wanted = {"executador": executador, "parametros": parametros or {}}
    return _begin({"correlation_id": correlation_id, "execucoes": [wanted]})


@app.task(name="resultado_coleta", max_retries=None, **AGAIN)
def resultado_coleta(self: Task, mensagens: list[dict[str, Any]]) -> dict[str, int]:
    """Record the answers of collectors."""
    return _record(mensagens)


@app.task(name="resultado_execucao", max_retries=None, **AGAIN)
def resultado_execucao(self: Task, mensagens: list[dict[str, Any]]) -> dict[str, int]:
    """Record the answers of executors."""
    return _record(mensagens)


@app.task(name="notificar", max_retries=3, **AGAIN)
def notificar(self: Task, avisos: list[list[int]]) -> dict[str, int]:
    """Tell who asked for it that an orchestration has ended."""
    return {"tentados": process.call(lambda host: host.notify(avisos))}


@app.task(name="varrer", bind=True, ignore_result=True)
def varrer(self: Task) -> dict[str, int]:
    """Deadlines, the debts of processes that died, tasks that were lost. Sent by beat; it comes again anyway."""
    return process.call(Host.sweep)


def _begin(document: dict[str, Any]) -> dict[str, Any]:
    request = requests.parse({key: value for key, value in document.items() if value is not None})
    accepted = process.call(lambda host: host.reception.accept(request))
    return {"correlation_id": accepted.correlation_id, "novo": accepted.new}


def _record(messages: list[dict[str, Any]]) -> dict[str, int]:
    works = [_work(message) for message in messages]
    return process.call(lambda host: host.record(works))


def _work(message: dict[str, Any]) -> Work:
    """A message as the orchestrator hands it over, with where it came from; or an envelope as anybody may send it."""
    if "corpo" in message:
        work = result_work(message["corpo"].encode(), message.get("fila") or names.RESULTS)
        work.broker = message.get("broker") or ""
        return work
    return result_work(strict_json.dumps(message), names.RESULTS)
