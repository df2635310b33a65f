"""Every shipped worker on one `Worker`: what `oraculo worker oraculo.collectors.all:worker` runs."""

from __future__ import annotations

from oraculo.collectors.eco import eco
from oraculo.errors import MissingExtraError
from oraculo.worker.worker import Worker

try:
    from oraculo.collectors.blog import blog
    from oraculo.collectors.relatorio import relatorio
    from oraculo.collectors.youtube import youtube
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"anyascii", "defusedxml", "fpdf"}:
        raise
    raise MissingExtraError("the shipped workers", "workers") from error

worker = Worker()
worker.escavador("youtube")(youtube)
worker.escavador("blog")(blog)
worker.escavador("eco")(eco)
worker.executador("relatorio")(relatorio)
