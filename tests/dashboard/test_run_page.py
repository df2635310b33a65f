"""The page of a run: outcome and first error, parts with links of their own, attempts, a map, retries from a task."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from api.conftest import result_of
from dashboard.conftest import Site
from oraculo.core.events import TicketConcluded

READY = "[data-run][data-ready]"


async def test_outcome_attempts_and_links(site: Site) -> None:
    failing = {"fonte": "falha", "max_tentativas": 3, "parametros": {"mensagem": "quota <b>used</b> up"}}
    name = await site.submit(coletas=[{"fonte": "eco"}, failing, failing], correlation_id="mal")
    ended = await site.ended(name)
    page = await site.open(f"/runs/{name}")
    await page.wait_for_selector(READY)
    outcome = page.locator("[data-outcome]")
    await expect(outcome).to_contain_text("partial in")
    await expect(outcome).to_contain_text("2 of 3 tickets failed")
    await expect(outcome).to_contain_text("quota <b>used</b> up")
    await outcome.get_by_role("button", name="Show all 2").click()
    await page.wait_for_url("**filter=failed*")
    await expect(page.locator("[data-gantt] .grow")).to_have_count(2)

    await page.get_by_role("tab", name="Attempts").click()
    await page.wait_for_url("**tab=attempts*")
    await expect(page.locator("[data-attempts] tbody tr")).to_have_count(2)
    first = page.locator("[data-attempts] tbody tr").first
    await expect(first.locator("td")).to_have_count(3)
    await expect(first.locator("td").last).to_contain_text("failed")
    await first.get_by_role("button").click()
    await expect(page.locator("#ticket .side-by-side .attempt")).to_have_count(3)
    await page.wait_for_url("**ticket=*")

    # Whoever is sent the address sees the same: the part, the filter, the ticket, the moment.
    await page.locator("[data-step='-1']").evaluate("(button) => button.click()")
    await page.wait_for_url("**at=*")
    other = await site.open(page.url.removeprefix(site.url))
    await expect(other.locator("#ticket .side-by-side")).to_contain_text("quota <b>used</b> up")
    await expect(other.get_by_role("tab", name="Attempts")).to_have_attribute("aria-selected", "true")
    await expect(other.locator("[data-link]")).to_have_text("in the past")
    assert ended["status"] == "parcial"
    plain = await site.open(f"/runs/{name}", java_script_enabled=False)
    await expect(plain.locator("[data-outcome]")).to_contain_text("quota <b>used</b> up")


async def test_an_error_may_bring_its_worker_stack_and_log(site: Site) -> None:
    await site.submit(coletas=[{"fonte": "alheia", "max_tentativas": 1}], correlation_id="pilha")
    [leased] = await site.curl.take("escavador_alheia", 1)
    told: dict[str, Any] = {
        "codigo": "Boom",
        "mensagem": "no",
        "worker": "w-7",
        "pilha": "at <main>:7",
        "log": ["a", "b<i>"],
    }
    await site.curl.answer(result_of(leased["mensagem"], status="erro", erros=[told]))
    await site.ended("pilha")
    page = await site.open("/runs/pilha")
    await page.wait_for_selector(READY)
    await page.locator("[data-gantt] .grow").first.click()
    attempt = page.locator("#ticket .attempt")
    await expect(attempt).to_contain_text("w-7")
    await attempt.get_by_text("Stack").click()
    await expect(attempt.locator("pre").first).to_have_text("at <main>:7")
    await attempt.get_by_text("Log (2 lines)").click()
    await expect(attempt.locator("pre").last).to_have_text("a\nb<i>")


async def test_a_wide_plan_has_a_map_and_a_run_is_retried_from_a_task(site: Site) -> None:
    chain: dict[str, Any] = {"t00": {"fonte": "eco"}}
    for n in range(1, 16):
        chain[f"t{n:02}"] = {"fonte": "eco", "depende": [f"t{n - 1:02}"]}
    await site.ended(await site.submit(tarefas=chain, correlation_id="cadeia"))
    page = await site.open("/runs/cadeia")
    await page.wait_for_selector(READY)
    await expect(page.locator(".minimap rect.f-concluida")).to_have_count(16)
    box = page.locator("[data-dag]")
    map_box = await page.locator(".minimap").bounding_box()
    assert map_box is not None and await box.evaluate("(box) => box.scrollLeft") == 0
    await page.mouse.click(map_box["x"] + map_box["width"] - 4, map_box["y"] + map_box["height"] / 2)
    assert await box.evaluate("(box) => box.scrollLeft") > 100
    await page.get_by_role("button", name="Fit", exact=True).click()
    await expect(page.locator(".minimap")).to_be_hidden()
    await page.locator("[data-gantt] .grow", has_text="t14").click()
    await page.get_by_role("button", name="Retry from here").click()
    await expect(page.locator("#dialog")).to_contain_text("The task t14 and all that depends on it")
    await page.locator("#dialog").get_by_role("button", name="Start 1 again").click()
    await page.wait_for_url("**/runs/cadeia~1*")
    await expect(page.locator("[data-outcome]")).to_contain_text("completed in")
    await expect(page.locator("#lineage")).to_contain_text("from the task t14")


async def test_time_in_the_queue_is_told_from_time_with_the_worker(site: Site) -> None:
    """Of a worker that says how long it worked, and of a lease; another worker's answer is one bar."""
    plain = {"coletas": [{"fonte": "alheia"}], "timeout_s": 3000}
    for name in ("alugada", "calada"):
        await site.submit(**plain, correlation_id=name)
    leased = {one["mensagem"]["correlation_id"]: one for one in await site.curl.take("escavador_alheia", 2)}
    kept = leased["calada"]["lease_id"]
    assert (await site.client.post(f"/api/v1/leases/{kept}/extend", json={"lease_s": 60})).status_code == 200
    await site.curl.answer(*(result_of(one["mensagem"]) for one in leased.values()))
    await site.submit(coletas=[{"fonte": "espera"}], correlation_id="dita", timeout_s=3000)
    site.gate.set()
    for name in ("alugada", "calada", "dita"):
        await site.ended(name)
    work = {}
    for name in ("alugada", "calada", "dita"):
        state = await site.oraculo.state(name)
        steps = (await site.oraculo.store.load([state.run]))[state.run]
        events = [event for step in steps for event in step.events]
        [work[name]] = [one.work_ms for one in events if isinstance(one, TicketConcluded)]
    assert work["alugada"] is not None and work["dita"] is not None and work["calada"] is None
    page = await site.open("/runs/calada")
    await page.wait_for_selector(READY)
    await expect(page.locator("[data-gantt] rect.untold")).to_have_count(1)
    await page.goto(f"{site.url}/runs/dita")
    await page.wait_for_selector(READY)
    await page.wait_for_selector("[data-gantt] rect.f-concluida")
    await expect(page.locator("[data-gantt] rect.untold")).to_have_count(0)


async def test_the_page_says_why_a_run_and_a_ticket_are_as_they_are(site: Site) -> None:
    failing = {"fonte": "falha", "max_tentativas": 2, "parametros": {"mensagem": "no <b>quota</b>"}}
    await site.ended(await site.submit(coletas=[{"fonte": "eco"}, failing], correlation_id="porque"))
    page = await site.open("/runs/porque?tab=why")
    await page.wait_for_selector(READY)
    part = page.locator("#panel-why")
    await expect(part.locator(".why-said")).to_have_text("ended as partial")
    await expect(part).to_contain_text("attempt 1 failed (error)")
    await expect(part).to_contain_text("no <b>quota</b>")
    await expect(part).to_contain_text("1 × completed")
    await page.get_by_role("tab", name="Graph and times").click()
    await page.locator("[data-gantt] .grow").last.click()
    panel = page.locator("#ticket")
    await panel.get_by_text("Why it is as it is").click()
    await expect(panel).to_contain_text("all of its attempts are used up: 2")
