"""A plan of Fluxo C on its page: somebody approves it, one task fails, and the plan grows by what undoes the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from playwright.async_api import Page, Route, expect

from api.conftest import result_of
from core.given import flow
from dashboard.conftest import Site
from oraculo.core.commands import Start
from oraculo.ports.work import Work

QUEUE = "executador_passo"
FAILED: dict[str, Any] = {"status": "erro", "erros": [{"codigo": "x", "mensagem": "não deu", "definitivo": True}]}


async def begin(site: Site, name: str, *, approval: bool = False) -> None:
    asked = flow({"a": [], "b": ["a"]}, approval=approval)
    tasks = tuple(replace(task, queue=QUEUE) for task in asked.tasks)
    run = site.oraculo.engine.next_run()
    await site.oraculo.engine.submit([Work(Start(run, name, replace(asked, tasks=tasks)), name)])


async def answer(site: Site, **payload: Any) -> None:
    [leased] = await site.curl.take(QUEUE, 1)
    await site.curl.answer(result_of(leased["mensagem"], **payload))


async def nodes(page: Page, count: int) -> None:
    await expect(page.locator(".dag .node:not(.later)")).to_have_count(count)


async def test_a_plan_grows_while_somebody_watches(site: Site) -> None:
    await begin(site, "cresce")
    page = await site.open("/runs/cresce")
    await expect(page.locator("[data-link]")).to_have_text("live")
    await nodes(page, 2)
    await expect(page.locator("[data-approval]")).to_be_hidden()
    stream = asyncio.create_task(_listened(site, "cresce"))
    await answer(site)
    await answer(site, **FAILED)
    await nodes(page, 4)
    await expect(page.locator(".dag .desfaz", has_text="undo a")).to_be_visible()
    await expect(page.locator("[data-progress]")).to_have_text("2/4")
    await expect(page.locator("[data-gantt]")).to_contain_text("undo b")
    await answer(site)
    await answer(site)
    await expect(page.locator("[data-progress]")).to_have_text("4/4")
    await expect(page.locator("[data-journal]")).to_contain_text("2 tickets are undone")
    assert [event["destino"] for event in await stream if event["evento"] == "ticket_concluded"] == [QUEUE] * 3

    await page.locator("[data-slider]").focus()
    await page.keyboard.press("Home")  # as it was at the start
    await nodes(page, 2)
    await expect(page.locator("[data-progress]")).to_have_text("0/2")
    await expect(page.locator("[data-gantt]")).not_to_contain_text("undo")
    await page.reload()  # and to somebody who comes later
    await nodes(page, 4)
    await page.locator(".dag .desfaz", has_text="undo a").click()
    await expect(page.locator("#ticket .attempts tbody tr")).to_have_count(1)


async def _listened(site: Site, name: str) -> list[dict[str, Any]]:
    return [event async for event in site.oraculo.stream(name) if event is not None]


async def test_somebody_approves_or_rejects(site: Site) -> None:
    for name, button, ending in (("sim", "Approve", "running"), ("nao", "Reject", "cancelled")):
        await begin(site, name, approval=True)
        page = await site.open(f"/runs/{name}")
        await expect(page.locator("[data-why]")).to_contain_text("somebody to approve the plan")
        banner = page.locator("[data-approval]")
        await banner.get_by_label("Your name").fill("ana")
        await banner.get_by_label("Reason").fill("<b>porque</b>")
        await banner.get_by_role("button", name=button).click()
        await expect(page.locator("[data-status]")).to_contain_text(ending)
        await expect(banner).to_contain_text("by ana: <b>porque</b>")
        await expect(banner.locator("form")).to_be_hidden()
        await page.locator("[data-slider]").focus()
        await page.keyboard.press("Home")
        await expect(banner).to_be_hidden()
        state = await site.oraculo.state(name)
        assert (state.approved_by, state.awaits_approval) == ("ana", False)


async def test_a_refusal_is_told(site: Site) -> None:
    await begin(site, "recusada", approval=True)
    page = await site.open("/runs/recusada")

    async def refuse(route: Route) -> None:
        await route.fulfill(status=409, json={"detail": "it was decided before"})

    await page.route("**/api/v1/orchestrations/*/*", refuse)
    await page.get_by_label("Your name").fill("ana")
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.locator("#toast")).to_contain_text("it was decided before")
