"""An operator's day, with the command line and a browser on one `oraculo up`: a source breaks, its breaker opens, 500
runs wait and 40 have failed; pause, mend, resume, retry the 40 from where they failed, backfill a missed hour."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect
from tools.servers.server import free_port

from cli.processes import Cli, Server
from dashboard.conftest import readers
from waiting import until

FAILED, WAITING, MISSED = 40, 500, 6
QUEUE = "executador_precos"
WORK = """
from pathlib import Path
from oraculo import Worker, WorkError

worker = Worker(concurrency=50)

@worker.escavador("lista")
async def lista(parametros):
    with open("lista.log", "a") as calls:
        calls.write("x")
    return parametros

@worker.executador("precos")
async def precos(parametros):
    with open("precos.log", "a") as calls:
        calls.write("x")
    if not Path("consertada").exists():
        raise WorkError("HTTP 503", codigo="fora")
    return {"preco": 1}
"""


def request(name: str) -> dict[str, Any]:
    execute = {"executador": "precos", "max_tentativas": 1}
    return {"coletas": [{"fonte": "lista"}], "execucoes": [execute], "correlation_id": name, "timeout_s": 3600}


def lines(names: list[str]) -> str:
    return "\n".join(json.dumps(request(name)) for name in names)


async def test_an_operators_day(browser: Browser, tmp_path: Path) -> None:
    settings = {"ORACULO_BREAKER_FAILURES": str(FAILED), "ORACULO_BREAKER_PROBE_S": "3600"}
    server = Server(tmp_path, "--worker", "fontes:worker", port=free_port(), **settings)
    (tmp_path / "fontes.py").write_text(WORK)
    await asyncio.to_thread(server.start)
    cli = Cli(tmp_path, server.url)

    async def run(*arguments: str, **options: Any) -> Any:
        return await asyncio.to_thread(cli.json, *arguments, **options)

    async def counts() -> dict[str, int]:
        found = await asyncio.to_thread(cli.json, "ls", "--limit", "1000")
        told: dict[str, int] = {}
        for one in found["orchestrations"]:
            told[one["status"]] = told.get(one["status"], 0) + 1
        return told

    def calls(source: str) -> int:
        log = tmp_path / f"{source}.log"
        return len(log.read_text()) if log.exists() else 0

    try:
        async with readers(browser) as reader:
            # A schedule of every ten minutes was paused; the source is broken, and 40 runs fail.
            (tmp_path / "agenda.json").write_text(
                json.dumps({"cron": "*/10 * * * *", "requisicao": {"coletas": [{"fonte": "lista"}]}})
            )
            await run("schedules", "put", "precos", "agenda.json")
            await run("schedules", "pause", "precos", "--motivo", "fonte fora")
            await run("submit", "--ndjson", "-", input=lines([f"falhou-{n}" for n in range(FAILED)]))
            [breaker] = await until(lambda: _breakers(run))
            assert (breaker["fila"], breaker["falhas"], breaker["erro"]) == (QUEUE, FAILED, "HTTP 503")
            assert (await counts())["erro"] == FAILED and calls("precos") == FAILED

            # The breaker is open: 500 more wait instead of failing.
            await run("submit", "--ndjson", "-", input=lines([f"espera-{n}" for n in range(WAITING)]))
            await until(lambda: _equals(lambda: calls("lista"), FAILED + WAITING))
            assert calls("precos") == FAILED
            assert QUEUE in (await run("show", "espera-0"))["espera"]

            # In the browser: what is wrong, and a pause while it is mended.
            operator = await reader(server.url)
            page = await operator.open("/workers")
            await expect(page.locator("#breakers-title")).to_be_visible()
            await expect(page.locator("#tables")).to_contain_text("HTTP 503")
            form = page.locator("form[action='/ui/destinations/pause']:has([name=fila]:not([type=hidden]))")
            await form.locator("[name=fila]").fill(QUEUE)
            await form.locator("[name=motivo]").fill("em conserto")
            await form.locator("button").click()
            await expect(page.locator("#pauses-title")).to_be_visible()
            [pause] = (await run("pauses"))["pausas"]
            assert (pause["fila"], pause["motivo"]) == (QUEUE, "em conserto")
            assert calls("precos") == FAILED  # no probe goes out meanwhile
            (tmp_path / "consertada").touch()

            # Resume there; a probe closes the breaker, and all that waited goes through.
            await page.get_by_role("button", name=f"Resume: {QUEUE}").click()
            await expect(page.locator("#pauses-title")).to_be_hidden()
            await page.locator("form[action='/ui/breakers/probe'] button").click()
            await until(lambda: _equals_later(counts, {"erro": FAILED, "concluida": WAITING}))
            assert (await run("breakers"))["disjuntores"] == [] and calls("precos") == FAILED + WAITING

            # The 40 again, from where they failed: what was collected is not asked for again.
            assert (await run("bulk", "retry", "--status", "erro", "--dry-run"))["total"] == FAILED
            await page.goto(f"{server.url}/runs?status=erro")
            await page.get_by_label("All that match the filter").check()
            await page.locator("#bulk button", has_text="Retry").click()
            await page.locator("#dialog").get_by_role("button", name=f"Start {FAILED} again").click()
            await expect(page.locator(".flash")).to_contain_text(f"{FAILED} started again")
            await until(lambda: _equals_later(counts, {"erro": FAILED, "concluida": WAITING + FAILED}))
            assert calls("lista") == FAILED + WAITING and calls("precos") == WAITING + 2 * FAILED
            again = await run("show", "falhou-0~1")
            assert again["origem"] == "falhou-0" and [one.get("reaproveitada") for one in again["tickets"]] == [
                True,
                None,
            ]

            # The hour that the schedule missed, once, however often it is asked for.
            await page.goto(f"{server.url}/schedules")
            await page.locator("summary", has_text="Backfill").click()
            await page.locator("input[name=de]").fill("2026-01-31T12:00:01Z")
            await page.locator("input[name=ate]").fill("2026-01-31T13:00:00Z")
            await page.get_by_role("button", name="Start what was missed").click()
            await expect(page.locator(".flash")).to_contain_text(f"{MISSED} started, 0 were there already")
            window = ("--de", "2026-01-31T12:00:01Z", "--ate", "2026-01-31T13:00:00Z")
            assert (await run("schedules", "backfill", "precos", *window))["iniciadas"] == 0
            await run("schedules", "resume", "precos")
            everything = {"erro": FAILED, "concluida": WAITING + FAILED + MISSED}
            await until(lambda: _equals_later(counts, everything))
            told = {one["evento"] for one in (await run("events"))["eventos"]}
            assert {"breaker_opened", "breaker_closed", "destination_paused", "destination_resumed"} <= told
    finally:
        await asyncio.to_thread(server.kill)


async def _breakers(run: Any) -> Any:
    found: list[Any] = (await run("breakers"))["disjuntores"]
    return found or None


async def _equals(value: Any, wanted: Any) -> bool:
    return bool(value() == wanted)


async def _equals_later(value: Any, wanted: Any) -> bool:
    return bool(await value() == wanted)
