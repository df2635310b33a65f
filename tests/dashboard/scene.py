"""An orchestrator as an operator finds it: runs of every ending, plans, decisions, dead letters, pauses, schedules."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser

from api.conftest import CurlWorker, result_of
from dashboard.conftest import Site, running
from waiting import until

FLOW_PLAN = Path(__file__).parents[2] / "examples" / "plano.json"
LONG = "relatorio-mensal-da-filial-de-sao-jose-do-vale-do-rio-preto-2026-01"
FAULT = (
    "HTTP 503 Service Unavailable: upstream connect error or disconnect/reset before headers. reset reason: connection"
)
SETTINGS = {
    "ORACULO_FLOW_C": "on", "ORACULO_SLA": "true", "ORACULO_PREDICTIONS": "true", "ORACULO_TRAILS": "true",
}  # fmt: skip
PATHS = {
    "overview": "/",
    "runs": "/runs",
    "runs-failed": "/runs?status=erro",
    "run-failed": "/runs/partida",
    "run-attempts": "/runs/partida?tab=attempts",
    "run-events": "/runs/partida?tab=events",
    "run-data": "/runs/partida?tab=data",
    "run-ticket": "/runs/partida?ticket=",
    "run-plan": "/runs/compra",
    "run-open": "/runs/aberta",
    "run-wide": f"/runs/{LONG}",
    "run-fluxo-c": "/runs/exemplo-fluxo-c",
    "dead-letters": "/dead-letters",
    "dead-letter": "/dead-letters/1",
    "workers": "/workers",
    "queue": "/queues/escavador_ninguem",
    "schedules": "/schedules",
    "sla": "/sla",
    "new": "/new",
    "security": "/security",
    "problems": "/problems",
    "missing": "/runs/nada",
    "docs": "/docs",
}


@asynccontextmanager
async def furnished(browser: Browser, folder: Path) -> AsyncIterator[Site]:
    """A site with all of it, settled: what can end has ended."""
    async with running(browser, folder, **SETTINGS) as site:
        await _runs(site)
        await _plans(site)
        await _dead_letters(site)
        await _operation(site)
        yield site


async def _runs(site: Site) -> None:
    eco: dict[str, Any] = {"fonte": "eco", "parametros": {"canal": "UC1", "paginas": [1, 2, 3]}}
    for n in range(6):
        labels = ["prod", "cliente:acme"] if n % 2 else []
        steps: dict[str, Any] = {"coletas": [eco, eco], "execucoes": [{"executador": "soma"}]}
        await site.ended(await site.submit(**steps, rotulos=labels, correlation_id=f"diaria-{n}"))
    failing = {"fonte": "falha", "max_tentativas": 3, "parametros": {"mensagem": FAULT}}
    again = {"fonte": "falha", "max_tentativas": 3, "parametros": {"ok_na": 2}}
    partial = await site.submit(
        coletas=[eco, failing, again], execucoes=[{"executador": "soma"}], correlation_id="partida"
    )
    await site.ended(partial)
    await site.ended(await site.submit(coletas=[failing], correlation_id="quebrada"))
    await site.submit(coletas=[{"fonte": "ninguem"}, {"fonte": "espera"}], correlation_id="aberta", timeout_s=3000)
    await site.submit(coletas=[{"fonte": "espera"}], correlation_id="parada", timeout_s=3000)
    await site.client.post("/api/v1/orchestrations/parada/pause", json={"motivo": "a fonte está em manutenção"})
    late = await site.submit(coletas=[{"fonte": "ninguem"}], correlation_id="tarde", timeout_s=1)
    await site.submit(coletas=[{"fonte": "espera"}], correlation_id="desistida")
    await site.client.post("/api/v1/orchestrations/desistida/cancel", json={})
    for name in (late, "desistida"):
        await site.ended(name)


async def _plans(site: Site) -> None:
    tasks: dict[str, Any] = {
        "catalogo": {"fonte": "eco", "parametros": {"itens": list(range(12))}},
        "precos": {
            "para_cada": "${{ catalogo.dados.itens }}", "como": "item",
            "faz": {"fonte": "eco", "parametros": {"n": "${{ item }}"}},
        },
        "conferir": {"executador": "soma", "depende": ["precos"]},
        "comprar": {
            "espera": {"aprovacao": {"pergunta": "Comprar 12 itens por R$ 4.310,00?", "papeis": ["financeiro"]}},
            "depende": ["conferir"],
        },
        "avisar": {"executador": "soma", "depende": ["comprar"], "parametros": {"canal": "loja"}},
    }  # fmt: skip
    await site.submit(tarefas=tasks, correlation_id="compra")
    wide = [{"fonte": "eco", "parametros": {"n": n}} for n in range(120)]
    bad = [{"fonte": "falha", "max_tentativas": 1, "parametros": {"mensagem": FAULT}}] * 3
    await site.ended(await site.submit(coletas=wide + bad, execucoes=[{"executador": "soma"}], correlation_id=LONG))
    plan = json.loads(FLOW_PLAN.read_text())
    assert (await site.client.post("/api/v1/plans", json=plan)).status_code == 202

    async def asked() -> bool:
        return "Comprar 12" in (await site.client.get("/ui/overview/figures")).text

    await until(asked)


async def _dead_letters(site: Site) -> None:
    body: dict[str, Any] = {"tipo_evento": "resultado_coleta", "timestamp": "2026-01-15T12:00:00Z"}
    letters = [{**body, "correlation_id": f"ninguem-{n}", "payload": {"fonte": "x", "dados": [n]}} for n in range(3)]
    letters.append({**body, "correlation_id": "diaria-1", "payload": {"fonte": "nada", "status": "ok"}})
    await site.client.post("/api/v1/results", json=letters)
    await site.client.post("/api/v1/results", json={**body, "correlation_id": "diaria-0"})


async def _operation(site: Site) -> None:
    request = {"coletas": [{"fonte": "eco"}]}
    for name, about in {
        "precos-a-cada-dez-minutos": {"cron": "*/10 * * * *", "fuso": "America/Sao_Paulo"},
        "limpeza": {"intervalo_s": 86400},
    }.items():
        put = await site.client.put(f"/api/v1/schedules/{name}", json={**about, "requisicao": request})
        assert put.status_code < 300, put.text
    await site.client.post("/api/v1/schedules/limpeza/pause", json={"motivo": "mudança de servidor"})
    put = await site.client.put("/api/v1/slos/coletas", json={"indicador": "execucoes_no_prazo", "objetivo": 0.99})
    assert put.status_code < 300, put.text
    await site.client.post("/api/v1/queues/escavador_antiga/pause", json={"motivo": "em conserto"})
    await site.submit(coletas=[{"fonte": "alheia"}], correlation_id="com-curl", timeout_s=3000)
    other = CurlWorker(site.client, name="coletor-da-filial-7")
    [leased] = await other.take("escavador_alheia", 1)
    await other.answer(result_of(leased["mensagem"]))
    await other.lease("escavador_alheia", wait=0)
