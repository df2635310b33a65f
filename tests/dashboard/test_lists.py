"""The list of orchestrations: errors and queues of each, counts, order, dates and views."""

from __future__ import annotations

import httpx2
from playwright.async_api import expect

from api.conftest import app, client, oraculo  # noqa: F401
from dashboard.conftest import Site
from dashboard.test_pages import HTML
from oraculo.service import Oraculo


async def test_a_row_says_its_queues_and_its_first_error(site: Site) -> None:
    failing = {"fonte": "falha", "max_tentativas": 1, "parametros": {"mensagem": "quota <b>used</b> up"}}
    many = [{"fonte": f"f{n}"} for n in range(6)]
    await site.ended(await site.submit(coletas=[{"fonte": "eco"}, failing], correlation_id="mal", rotulos=["prod"]))
    await site.submit(coletas=many, correlation_id="larga")
    wide = [failing, *({"fonte": "eco"} for _ in range(600))]
    await site.ended(await site.submit(coletas=wide, correlation_id="de-601"))
    shown = (await site.client.get("/runs", headers=HTML)).text
    assert shown.count('<span class="row-error" title="quota &lt;b&gt;used&lt;/b&gt; up">') == 2
    assert '<span class="tag">falha</span> <span class="tag">eco</span>' in shown  # what failed comes first
    assert '<span class="muted">+3</span>' in shown
    timed_out = await site.submit(coletas=[{"fonte": "ninguem"}], correlation_id="tarde", timeout_s=1)
    await site.ended(timed_out)
    assert 'class="row-error"' in (await site.client.get("/runs?status=timeout", headers=HTML)).text

    page = await site.open("/runs?status=parcial", timezone_id="America/Sao_Paulo")
    await expect(page.locator(".chip-check.s-parcial b")).to_have_text("2")
    await page.get_by_role("button", name="Save this view").click()
    await page.get_by_label("Name of the view").fill("mine <i>")
    await page.get_by_role("button", name="Save").click()
    await page.goto(f"{site.url}/runs")
    await page.get_by_role("link", name="mine <i>").click()
    await expect(page.get_by_role("link", name="mine <i>")).to_have_attribute("aria-current", "true")
    await page.get_by_label("From (your time)").fill("2026-01-31T12:00")
    await page.get_by_role("button", name="Filter", exact=True).click()
    await page.wait_for_url("**since=2026-01-31T15%3A00Z*")
    await expect(page.get_by_label("From (your time)")).to_have_value("2026-01-31T12:00")
    await page.get_by_role("button", name="Forget the view mine <i>").click()
    await expect(page.get_by_role("link", name="mine <i>")).to_have_count(0)


async def test_order_and_counts(client: httpx2.AsyncClient, oraculo: Oraculo) -> None:  # noqa: F811
    for name, tickets in (("b", 3), ("a", 1), ("c", 2)):
        await oraculo.submit({"correlation_id": name, "coletas": [{"fonte": "x"}] * tickets})

    async def order(query: str) -> list[str]:
        text = (await client.get(f"/runs?{query}", headers=HTML)).text
        return [part.split('"')[0] for part in text.split('data-row data-id="')[1:]]

    assert await order("") == ["c", "a", "b"]
    assert await order("sort=name") == ["a", "b", "c"]
    assert await order("sort=tickets") == ["b", "c", "a"]
    assert await order("sort=<x>") == ["c", "a", "b"]
    counted = (await client.get("/runs?since=1h", headers=HTML)).text
    assert counted.count("data-status-count") == 7 and "<b data-status-count>3</b>" in counted
    assert "data-status-count" not in (await client.get("/runs?fonte=x", headers=HTML)).text  # would cost more
