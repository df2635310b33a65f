"""Which Celery queue takes what: one per source and per executor, one per type of result."""

from __future__ import annotations

from oraculo.core.vocabulary import Kind

PREFIX = "oraculo."
SWEEP = "oraculo.varredura"
NOTICES = "oraculo.notificacoes"
SEALED = "selado"  # the body of an answer in a task, where payloads are sealed at rest
ANNOUNCE = "oraculo_filas"  # the remote control command by which workers hear of queues
START = {Kind.COLETA: "iniciar_coleta", Kind.EXECUCAO: "iniciar_execucao"}


def orders_queue(queue: str) -> str:
    """`oraculo.escavador_youtube`: the name of the worker's own queue, so that operators see one name for one thing."""
    return PREFIX + queue


def results_queue(tipo: str) -> str:
    """`oraculo.resultado_coleta`, `oraculo.resultado_execucao`."""
    return PREFIX + tipo
