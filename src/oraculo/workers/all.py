"""Every shipped worker on one `Worker`: what `oraculo worker oraculo.workers.all:worker` runs."""

from __future__ import annotations

from oraculo.errors import MissingExtraError
from oraculo.worker import Worker

try:
    from oraculo.workers.blog import blog
    from oraculo.workers.relatorio import relatorio
    from oraculo.workers.youtube import youtube
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"anyascii", "defusedxml", "fpdf"}:
        raise
    raise MissingExtraError("the shipped workers", "workers") from error

worker = Worker()
worker.escavador("youtube")(youtube)
worker.escavador("blog")(blog)
worker.executador("relatorio")(relatorio)
