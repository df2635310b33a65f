"""Workers for tests: two that work, and one that fails with a secret in its error."""

from __future__ import annotations

import os

from oraculo import Worker
from oraculo.errors import WorkError

worker = Worker()
other = Worker()


@worker.escavador("um")
async def um(parametros: dict[str, object]) -> dict[str, object]:
    return parametros


@other.executador("dois")
def dois(dados: list[dict[str, object]]) -> dict[str, object]:
    return {"recebidos": len(dados)}


@worker.escavador("falha")
async def falha(parametros: dict[str, object]) -> None:
    planted = os.environ["PLANTED"]
    raise RuntimeError(f"postgresql://ana:{planted}@banco/x refused token={planted}, Authorization: Bearer {planted}")


both = Worker()
both.escavador("um")(um)
both.escavador("falha")(falha)
both.executador("dois")(dois)


@both.executador("quebra")
async def quebra(dados: list[dict[str, object]], parametros: dict[str, object]) -> dict[str, object]:
    if "action" in parametros:  # it is asked to undo what it did
        return {"desfeito": parametros["original_ticket_id"]}
    raise WorkError("quebrou de vez", definitivo=True)
