"""Queues, dead letters and the palette: what waits is seen, paused and cancelled; everything is found by its name."""

from __future__ import annotations

import httpx2
import pytest
from playwright.async_api import expect

from api.conftest import app, client, oraculo  # noqa: F401
from dashboard.conftest import Site
from dashboard.test_axe import AXE, RUN
from dashboard.test_pages import HTML
from oraculo.dashboard.formats import indented
from oraculo.service import Oraculo


async def test_a_queue_is_looked_into_paused_and_its_runs_are_cancelled(site: Site) -> None:
    await site.submit(coletas=[{"fonte": "ninguem", "parametros": {"a": "<b>x</b>"}}], correlation_id="presa")
    await site.submit(coletas=[{"fonte": "espera"}], correlation_id="outra")
    page = await site.open("/workers")
    await page.get_by_role("link", name="escavador_ninguem").click()
    await page.wait_for_url("**/queues/escavador_ninguem")
    await expect(page.locator("main tbody tr")).to_have_count(1)
    await expect(page.locator("main tbody tr")).to_contain_text("<b>x</b>")
    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.locator(".why.warn")).to_contain_text("Paused by")
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    assert await page.evaluate(RUN, {}) == []
    await page.get_by_role("button", name="Resume", exact=True).click()
    await expect(page.locator(".why.warn")).to_have_count(0)
    await page.get_by_role("button", name="Cancel runs that use it").click()
    await expect(page.locator("#dialog")).to_contain_text("This will cancel 1 orchestration")
    await page.locator("#dialog").get_by_role("button", name="Cancel 1").click()
    await expect(page.locator("main")).to_contain_text("Nothing waits for an answer")
    assert (await site.ended("presa"))["status"] == "cancelada"

    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("out")
    await expect(page.locator("#choices li", has_text="outra")).to_be_visible()
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    assert await page.evaluate(RUN, {}) == []
    await page.get_by_role("combobox").fill("dead")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/dead-letters")


async def test_a_dead_letter_is_shown_a_line_for_each_value(client: httpx2.AsyncClient) -> None:  # noqa: F811
    body = {
        "correlation_id": "x",
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": "y"},
        "timestamp": "2026-01-01T00:00:00Z",
    }
    await client.post("/api/v1/results", json=[body])
    shown = (await client.get("/dead-letters/1", headers=HTML)).text
    assert "  &#34;payload&#34;: {\n    &#34;fonte&#34;: &#34;y&#34;\n  }" in shown


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"a":[1.50,{}],"b":"x, {y}: \\"z\\""}', '{\n  "a": [\n    1.50,\n    {}\n  ],\n  "b": "x, {y}: \\"z\\""\n}'),
        ("[]", "[]"),
        ("9007199254740993", "9007199254740993"),
        ('"a: b"', '"a: b"'),
    ],
)
def test_json_is_indented_and_nothing_else_changes(text: str, lines: str) -> None:
    assert indented(text) == lines


async def test_who_is_logged_in(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:  # noqa: F811
    assert "None." in (await client.get("/security", headers=HTML)).text
    assert (await client.get("/queues/%3Cx%3E", headers=HTML)).status_code == 422
