"""What an operator has to see: a server that is gone, what failed, what nothing was done to, who works where."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import httpx2
from playwright.async_api import Browser, Page, expect
from tools.servers.server import free_port

from api.conftest import BOTH, Start, app, client, oraculo, settings_for, started  # noqa: F401
from cli.processes import Server
from dashboard.conftest import Site, readers
from dashboard.test_pages import HTML, post, token_of
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.core.vocabulary import TipoEvento
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.leases import HttpLeases
from oraculo.wire.mensagem import Mensagem
from oraculo.worker import answers
from oraculo.worker.worker import Worker
from waiting import until

PLAN = Path(__file__).parents[2] / "examples" / "plano.json"
SCREENS = ("/", "/runs", "/dead-letters", "/workers", "/new")


async def test_a_server_that_is_gone_is_seen_on_every_page(browser: Browser, tmp_path: Path) -> None:
    server = Server(tmp_path, port=free_port())
    await asyncio.to_thread(server.start)
    try:
        async with readers(browser) as reader, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
            request = {"coletas": [{"fonte": "ninguem"}], "correlation_id": "aberta"}
            assert (await client.post("/api/v1/orchestrations", json=request)).status_code == 202
            someone = await reader(server.url)
            pages = [await someone.open(path) for path in (*SCREENS, "/runs/aberta")]
            for page in pages:
                await page.wait_for_selector("html[data-ready]")
                await expect(page.locator("#offline")).to_be_hidden()
            await asyncio.to_thread(server.kill)
            for page in pages:
                await page.bring_to_front()
                await expect(page.locator("#offline")).to_contain_text("No connection to the server since")
            dimmed = "getComputedStyle(document.querySelector('#figures > *')).opacity"
            assert float(await pages[0].evaluate(dimmed)) < 1  # figures that may be old do not look fresh
            await pages[-1].get_by_role("button", name="Cancel").click()
            await expect(pages[-1].locator("#toast")).to_contain_text("nothing was done")
            await asyncio.to_thread(server.start)
            for page in pages:
                await page.bring_to_front()
                await expect(page.locator("#offline")).to_be_hidden()
            someone.faults = [one for one in someone.faults if "htmx:sendError" not in one]
    finally:
        await asyncio.to_thread(server.kill)


async def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    found: list[dict[str, float]] = await page.eval_on_selector_all(
        selector, "all => all.map((one) => one.getBoundingClientRect().toJSON())"
    )
    return found


async def test_an_error_stands_beside_the_bars_and_not_over_them(site: Site) -> None:
    long = "a fonte respondeu 503 " * 8
    coletas = [{"fonte": "falha", "parametros": {"mensagem": long}, "max_tentativas": 2}, {"fonte": "eco"}]
    await site.ended(await site.submit(coletas=coletas, correlation_id="falhou"))
    for width in (1440, 1024, 390):
        page = await site.open("/runs/falhou", viewport={"width": width, "height": 900})
        await page.wait_for_selector("[data-run][data-ready]")
        await page.wait_for_selector("[data-gantt] .grow svg.lane rect")
        lanes, errors = await boxes(page, ".grow svg.lane"), await boxes(page, ".grow .lane-error")
        assert lanes and len(errors) == 2
        for error in errors:
            assert all(error["width"] == 0 or error["left"] >= lane["right"] for lane in lanes), (width, error, lanes)
        if width > 1000:
            await expect(page.locator(".lane-error").first).to_contain_text("respondeu 503")
        labels = sorted(await boxes(page, ".gantt-axis text"), key=lambda one: one["left"])
        assert all(one["right"] <= other["left"] for one, other in itertools.pairwise(labels)), width


async def test_tickets_that_wait_for_others_count_as_open(site: Site) -> None:
    await site.submit(
        coletas=[{"fonte": "espera"}], execucoes=[{"executador": "soma"}], correlation_id="espera", timeout_s=60
    )
    page = await site.open("/runs/espera")
    await page.wait_for_selector("[data-run][data-ready]")
    await expect(page.locator("[data-filter=open] [data-count]")).to_have_text("2")


async def test_an_action_that_did_nothing_is_no_success(site: Site) -> None:
    body = {"correlation_id": "x", "tipo_evento": "resultado_coleta", "payload": {"fonte": "x"}}
    await site.client.post("/api/v1/results", json=[{**body, "timestamp": "2026-11-15T12:00:00Z"}])
    page = await site.open("/dead-letters")
    await page.wait_for_selector("html[data-ready]")
    await page.get_by_role("button", name="Requeue").first.click()
    await page.locator("#dialog[open] button.primary, #dialog[open] form button").first.click()
    await expect(page.locator(".flash.bad[role=alert]")).to_contain_text("0 taken in again, 1 refused again")


async def test_nothing_selected_is_said_as_such(client: httpx2.AsyncClient) -> None:  # noqa: F811
    token = token_of(await client.get("/runs", headers=HTML))
    assert "Nothing is selected" in (await post(client, "/ui/runs/cancel", token)).text
    assert "it has ended" in (await post(client, "/ui/runs/cancel", token, id="nada")).text


async def test_a_filter_that_cannot_be_read_says_what_can(client: httpx2.AsyncClient) -> None:  # noqa: F811
    await client.post("/api/v1/orchestrations", json={**BOTH, "correlation_id": "abc"})
    page = (await client.get("/runs?since=ontem", headers=HTML)).text
    assert "&#39;ontem&#39; is no instant; allowed: an age (1h, 24h, 7d, 30d) or ISO 8601" in page
    assert "Nothing matches" not in page


async def test_a_plan_of_fluxo_c_is_neither_repeated_nor_edited_as_a_request(
    client: httpx2.AsyncClient,  # noqa: F811
) -> None:
    plan = json.loads(PLAN.read_text())
    assert (await client.post("/api/v1/plans", json=plan)).status_code == 202
    await client.post("/api/v1/orchestrations", json={**BOTH, "correlation_id": "abc"})
    of_plan, of_request = [
        (await client.get(f"/runs/{name}", headers=HTML)).text for name in ("exemplo-fluxo-c", "abc")
    ]
    assert 'href="/new?from=' in of_request and 'href="/new?from=' not in of_plan
    assert all('action="/ui/runs/retry"' in page for page in (of_request, of_plan))
    token = token_of(await client.get("/new", headers=HTML))
    told = (await post(client, "/ui/new/preview", token, text=json.dumps(plan))).text
    assert (
        told.count("this is a plan of Fluxo C: hand it in with POST /api/v1/plans") == 1 and "unknown field" not in told
    )


async def test_the_command_that_replays_asks_this_server(client: httpx2.AsyncClient) -> None:  # noqa: F811
    await client.post("/api/v1/orchestrations", json={**BOTH, "correlation_id": "abc"})
    page = (await client.get("/runs/abc", headers=HTML)).text
    assert 'data-copy="oraculo replay --url http://' in page and 'oraculo replay abc"' not in page


async def test_an_empty_page_offers_what_shows_up_there(client: httpx2.AsyncClient) -> None:  # noqa: F811
    page = (await client.get("/", headers=HTML)).text
    assert "oraculo worker oraculo.collectors.all:worker" in page and "oraculo demo" not in page


async def test_queues_of_the_orchestrator_are_its_own(client: httpx2.AsyncClient) -> None:  # noqa: F811
    page = (await client.get("/workers", headers=HTML)).text
    for queue in ("orquestrador_resultados", "execution.results", "plans.consensus"):
        row = page.split(f'<td class="name"><a href="/queues/{queue}">{queue}</a></td>')[1].split("</tr>")[0]
        assert "orchestrator" in row, queue


async def test_an_executor_on_a_broker_is_seen_by_its_answers() -> None:
    async def no_state(_run: int) -> None:
        return None

    worker, leases = Worker(name="calc-1"), HttpLeases(MemoryBroker(), MonotonicClock(), no_state)
    worker.executor("soma")(lambda: {"soma": 1})
    order = Mensagem("c", TipoEvento.INICIAR_EXECUCAO, {}, "2025-10-14T12:00:00Z", ticket_id="t", tentativa=1)
    function = worker._handlers["executador_soma"]
    raw = answers.answer(function, order, answers.success(function, {"soma": 1}), worker.name)
    for _ in range(2):
        leases.heard(AnswerReader()(raw, "orquestrador_resultados"))
    (seen,) = leases.workers.values()
    assert (seen.name, seen.queues, seen.answered, seen.over) == ("calc-1", {"executador_soma"}, 2, "broker")


async def test_durability_is_said_in_the_language_of_the_page(client: httpx2.AsyncClient) -> None:  # noqa: F811
    page = (await client.get("/", headers={**HTML, "Accept-Language": "pt-BR"})).text
    assert "resiste à queda de energia" in page and ">power-safe<" not in page and ">best-effort<" not in page


async def test_a_topic_that_only_tells_needs_no_reader(started: Start) -> None:  # noqa: F811
    async with started(ORACULO_FLOW_C="on") as browser:
        assert (await browser.post("/api/v1/plans", json=json.loads(PLAN.read_text()))).status_code == 202

        async def told() -> str:
            text = (await browser.get("/workers", headers=HTML)).text
            return text if ">telemetry-flow-c<" in text else ""

        shown = await until(told)
        row = shown.partition(">telemetry-flow-c<")[2].partition("</tr>")[0]
        assert "for whoever listens" in row and "nobody consumes it" not in row
        row = shown.partition(">execution.tickets<")[2].partition("</tr>")[0]
        assert "nobody consumes it" in row
        assert "telemetry-flow-c" not in (await browser.get("/ui/overview/figures", headers=HTML)).text
