"""Workers for tests: two that work, and one that fails with a secret in its error."""

from __future__ import annotations

import os

from oraculo import Worker

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
