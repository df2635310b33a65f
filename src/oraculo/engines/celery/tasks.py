"""The tasks under the name that programs import them by: `from oraculo.engines.celery.tasks import iniciar_coleta`."""

from oraculo.apps.celery.tasks import (
    anunciar_filas,
    iniciar_coleta,
    iniciar_execucao,
    notificar,
    resultado_coleta,
    resultado_execucao,
    varrer,
)

__all__ = [
    "anunciar_filas",
    "iniciar_coleta",
    "iniciar_execucao",
    "notificar",
    "resultado_coleta",
    "resultado_execucao",
    "varrer",
]
