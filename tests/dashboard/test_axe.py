"""No finding of axe, in both themes, on every page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.conftest import Site

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
EVERY = (
    "/?window=1h",
    "/runs",
    "/runs/pronta",
    "/dead-letters",
    "/new",
    "/runs/aberta",
    "/dead-letters/1",
    "/workers",
    "/problems",
    "/problems/queue-full",
    "/runs/nada",
    "/security",
    "/schedules",
    "/sla",
    "/docs",
    "/queues/escavador_ninguem",
    "/runs/pronta?tab=why",
    "/runs/pronta?tab=attempts",
    "/runs/pronta?tab=events",
    "/runs/pronta?tab=data",
)
RUN = """async (options) => (await axe.run(document, {resultTypes: ["violations"], ...options})).violations
  .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_no_finding(site: Site, theme: str) -> None:
    await site.ended(
        await site.submit(
            coletas=[{"fonte": "falha", "max_tentativas": 2}, {"fonte": "eco", "parametros": {"a": [1, None, "x"]}}],
            execucoes=[{"executador": "soma"}],
            correlation_id="pronta",
        )
    )
    await site.submit(coletas=[{"fonte": "ninguem"}, {"fonte": "espera"}], correlation_id="aberta", timeout_s=20)
    for name in ("a", "b"):
        body: dict[str, Any] = {"correlation_id": name, "tipo_evento": "resultado_coleta", "payload": {"fonte": "x"}}
        await site.client.post("/api/v1/results", json=[{**body, "timestamp": "2026-11-15T12:00:00Z"}])
    reader = await site.reader(site.url, color_scheme=theme, bypass_csp=False)
    page = await reader.open("/?window=1h")
    script = AXE.read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for path in EVERY:
        await page.goto(site.url + path)
        if path.startswith("/runs/") and path != "/runs/nada":
            await page.wait_for_selector("[data-run][data-ready]")
            await page.wait_for_selector("#documents .json", state="attached")
        if path == "/runs/pronta":
            await page.locator("[data-gantt] .grow").first.click()
            await page.wait_for_selector("#ticket .attempts")
        if path == "/runs":
            await page.locator("[data-row] input").first.check()
            await page.locator("#bulk button", has_text="Cancel").click()
            await page.wait_for_selector("#dialog[open]")
        await page.evaluate(script)
        found[path] = await page.evaluate(RUN, {})
    assert {path: what for path, what in found.items() if what} == {}
