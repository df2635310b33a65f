"""Policies on every engine: a plan, a ticket and an answer that are refused; journals replay without asking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.engine_cases import EngineCase, OnCeleryAndRedis, OnTemporal, answer, source

RULES = """package casa.regras
import rego.v1
default allow := false
allow if count(violations) == 0
violations contains {"rule": "plano", "msg": "este plano não"} if "proibido" in input.resource.labels
violations contains {"rule": "fonte", "msg": "esta fonte não"} if input.resource.parameters.proibido
violations contains {"rule": "resposta", "msg": "isto não se diz"} if input.resource.result.segredo
"""


class CeleryWithPolicies(OnCeleryAndRedis):
    def settings(self) -> dict[str, str]:
        return {**super().settings(), **governed(self.folder)}


class LocalWithPolicies(EngineCase):
    def settings(self) -> dict[str, str]:
        return governed(self.folder)


class TemporalWithPolicies(OnTemporal):
    def settings(self) -> dict[str, str]:
        return {**super().settings(), **governed(self.folder)}


def governed(folder: Path) -> dict[str, str]:
    rules = folder / "politicas"
    rules.mkdir(exist_ok=True)

    asked = {f"ORACULO_POLICIES_{point}": "casa.regras" for point in ("PLAN", "TICKET", "RESULT")}
    (rules / "casa.rego").write_text(RULES)
    return {"ORACULO_POLICIES": f"embedded:{rules}", "ORACULO_POLICIES_TIMEOUT_S": "30", **asked} | {
        "ORACULO_POLICIES_ALLOCATION": ""
    }


ENGINES = {"local": LocalWithPolicies, "celery-redis": CeleryWithPolicies, "temporal": TemporalWithPolicies}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"engine-{name}")) for name in ENGINES], scope="module"
)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineCase]:
    case = ENGINES[request.param](tmp_path_factory.mktemp(f"politicas-{request.param}"))
    try:
        case.start()
        yield case
    finally:
        case.close()


def said(engine: EngineCase, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.call("GET", f"/orchestrations/{name}")["politicas"]
    return found


async def test_what_policies_refuse_does_not_happen_and_is_said(engine: EngineCase) -> None:
    refused = engine.submit(coletas=[{"fonte": source()}], rotulos=["proibido"])
    result = engine.result(refused)
    assert result["status"] == "erro"
    (plan,) = said(engine, refused)
    assert (plan["ponto"], plan["permitido"]) == ("plano", False)
    assert [(one["regra"], one["mensagem"]) for one in plan["violacoes"]] == [("plano", "este plano não")]
    events = await engine.journal(refused)
    assert (events["PolicyEvaluated"], events["TicketsDispatched"]) == (1, 0)

    good, bad, leaks = source(), source(), source()
    name = engine.submit(
        coletas=[{"fonte": good}, {"fonte": bad, "parametros": {"proibido": True}}, {"fonte": leaks}],
        fan_in={"modo": "todos"},
    )
    await engine.send(answer(await engine.take(good), {"n": 1}))
    await engine.send(answer(await engine.take(leaks), {"segredo": "xyz"}))
    result = engine.result(name)
    assert result["status"] == "parcial"
    by_source = {one["fonte"]: one for one in result["coletas"]}
    assert (by_source[good]["status"], by_source[good]["dados"]) == ("concluida", {"n": 1})
    assert (by_source[bad]["status"], by_source[bad]["tentativas"]) == ("erro", 0)
    assert "esta fonte não" in by_source[bad]["erros"][0]["mensagem"]
    assert (by_source[leaks]["status"], by_source[leaks]["tentativas"]) == ("erro", 1)
    assert by_source[leaks]["erros"][0]["codigo"] == "politica"
    assert sorted((one["ponto"], one["violacoes"][0]["regra"]) for one in said(engine, name)) == [
        ("resultado", "resposta"),
        ("ticket", "fonte"),
    ]
    events = await engine.journal(name)
    assert (events["AnswerHeld"], events["TicketConcluded"], events["TicketFailed"]) == (2, 1, 1)
