"""What somebody does with the dashboard, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from dashboard.conftest import Site, running

STATUS = "[data-status]"


async def ready(page: Page) -> None:
    await page.wait_for_selector("[data-run][data-ready]")


async def test_a_request_from_the_form_watched_to_its_end(site: Site) -> None:
    page = await site.open("/new")
    fonte = page.locator("[data-path='coletas.0.fonte']")
    await fonte.fill("tem espaço")
    await expect(page.locator("[data-fault='coletas.0.fonte']")).to_contain_text("pattern")
    await expect(fonte).to_have_attribute("aria-invalid", "true")
    await expect(page.locator("[data-send]")).to_be_disabled()
    await fonte.fill("espera")
    await expect(page.locator("#preview .dag")).to_contain_text("escavador_espera")
    await page.locator("[data-path='coletas.1.fonte']").fill("eco")
    await page.locator("[data-path='coletas.1.parametros']").fill('{"n": 7}')
    await page.locator("[data-path='execucoes.0.executador']").fill("soma")
    await page.locator("[data-path=correlation_id]").fill("do formulário")
    await expect(page.locator("#preview .dag")).to_contain_text("executador_soma")
    await expect(page.locator("#preview")).to_contain_text("3 tickets")
    assert json.loads(await page.locator("#text").input_value())["coletas"][1] == {
        "fonte": "eco",
        "parametros": {"n": 7},
    }
    await page.locator("[data-send]").click()

    await ready(page)
    assert page.url.endswith("/runs/do%20formul%C3%A1rio")
    await expect(page.locator(".flash")).to_contain_text("durable")
    await expect(page.locator(STATUS)).to_contain_text("running")
    await expect(page.locator("[data-why]")).to_contain_text("Waiting for answers from escavador_espera (1)")
    await expect(page.locator("[data-link]")).to_have_text("live")
    site.gate.set()
    await expect(page.locator(STATUS)).to_contain_text("completed")
    await expect(page.locator("[data-progress]")).to_have_text("3/3")
    await expect(page.locator("[data-why]")).to_be_hidden()
    await expect(page.locator(".dag .node.n-concluida")).to_have_count(4)
    await expect(page.locator("#documents")).to_contain_text("total")


async def test_a_ticket_with_the_cause_of_each_attempt(site: Site) -> None:
    name = await site.submit(
        coletas=[{"fonte": "falha", "parametros": {"ok_na": 3}}, {"fonte": "eco"}], correlation_id="repetida"
    )
    await site.ended(name)
    page = await site.open("/runs/repetida")
    await ready(page)
    await expect(page.locator("[data-gantt]")).to_contain_text("escavador_falha #1")
    await page.locator(".dag .node", has_text="escavador_falha").click()
    panel = page.locator("#ticket")
    rows = panel.locator(".attempts tbody tr")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(0)).to_contain_text("first attempt")
    await expect(rows.nth(1)).to_contain_text("because attempt 1 failed: the worker answered with an error.")
    await expect(rows.nth(1)).to_contain_text("a fonte respondeu 503")
    await expect(rows.nth(2)).to_contain_text("because attempt 2 failed")
    await expect(panel).to_contain_text("ok_na")
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    ticket = (await site.oraculo.show(name))["tickets"][0]["ticket_id"]
    await page.goto(f"{site.url}/runs?texto={ticket}")
    await expect(panel.locator(".attempts tbody tr")).to_have_count(3)


async def test_the_replay_shows_any_past_moment(site: Site) -> None:
    name = await site.submit(coletas=[{"fonte": "eco"}] * 3, execucoes=[{"executador": "soma"}])
    await site.ended(name)
    events = await site.oraculo.events(name)
    page = await site.open(f"/runs/{name}")
    await ready(page)
    slider = page.locator("[data-slider]")
    await expect(slider).to_have_attribute("max", str(len(events)))
    await slider.fill("1")
    await expect(page.locator(STATUS)).to_contain_text("pending")
    await expect(page.locator("[data-progress]")).to_have_text("0/4")
    await expect(page.locator("[data-link]")).to_have_text("in the past")
    await page.locator("[data-step='1']").click()
    await expect(page.locator("[data-at]")).to_contain_text(f"event 2 of {len(events)}")
    first_answer = next(event["seq"] for event in events if event["evento"] == "ticket_concluded")
    await slider.fill(str(first_answer))
    await expect(page.locator("[data-progress]")).to_have_text("1/4")
    await expect(page.locator(STATUS)).to_contain_text("running")
    await page.get_by_role("tab", name="Events").click()
    await page.locator("[data-journal] .jrow", has_text="Ended: completed").click()
    await expect(page.locator("[data-progress]")).to_have_text("4/4")
    await slider.fill("1")
    await page.locator("[data-play]").click()
    await expect(page.locator("[data-progress]")).to_have_text("4/4")
    await expect(page.locator("[data-live]")).to_be_hidden()


async def test_cancel_says_how_many_and_then_does_it(site: Site) -> None:
    names = [await site.submit(coletas=[{"fonte": "espera"}], correlation_id=f"aberta-{n}") for n in range(3)]
    page = await site.open("/runs")
    for name in names[:2]:
        await page.get_by_label(f"Select {name}").check()
    await expect(page.locator("[data-selected]")).to_have_text("2 selected")
    await page.locator("#bulk button", has_text="Cancel").click()
    dialog = page.locator("#dialog")
    await expect(dialog).to_contain_text("This will cancel 2 orchestrations")
    assert (await site.oraculo.state(names[0])).closed_at is None
    await dialog.locator("[name=motivo]").fill("engano <b>meu</b>")
    await dialog.get_by_role("button", name="Cancel 2").click()
    await expect(page.locator(".flash")).to_contain_text("2 cancelled")
    for name in names[:2]:
        assert (await site.oraculo.state(name)).cancel_reason == "engano <b>meu</b>"
    await page.goto(f"{site.url}/runs/{names[2]}")
    await ready(page)
    await page.locator("[data-when-open] button", has_text="Cancel").click()
    await dialog.get_by_role("button", name="Cancel 1").click()
    await expect(page.locator(STATUS)).to_contain_text("cancelled")


async def test_everything_that_a_filter_names_is_retried(site: Site) -> None:
    for n in range(3):
        await site.ended(await site.submit(coletas=[{"fonte": "eco", "parametros": {"n": n}}], correlation_id=f"a-{n}"))
    await site.ended(await site.submit(coletas=[{"fonte": "falha", "max_tentativas": 1}], correlation_id="b-0"))
    page = await site.open("/runs?texto=a-")
    await page.get_by_label("All that match the filter").check()
    await page.locator("#bulk button", has_text="Retry").click()
    await expect(page.locator("#dialog")).to_contain_text("This will start 3 orchestrations again")
    await expect(page.locator("#dialog")).to_contain_text("texto=a-")
    await page.locator("#dialog").get_by_role("button", name="Start 3 again").click()
    await expect(page.locator(".flash")).to_contain_text("3 started again")
    result = await site.ended("a-1~1")
    assert result["coletas"][0]["dados"] == {"n": 1}
    assert (await site.oraculo.store.summary("b-0~1")) is None


async def test_new_rows_never_move_those_being_read(site: Site) -> None:
    for n in range(5):
        await site.submit(coletas=[{"fonte": "espera"}], correlation_id=f"lida-{n}")
    page = await site.open("/runs")
    ids = page.locator("[data-row] a.id")
    before = await ids.all_text_contents()
    box = await ids.first.bounding_box()
    for n in range(4):
        await site.submit(coletas=[{"fonte": "espera"}], correlation_id=f"nova-{n}")
    site.gate.set()
    await expect(page.locator("#new-runs")).to_contain_text("4 new")
    await expect(page.locator("[data-row]").first).to_contain_text("completed")
    assert await ids.all_text_contents() == before
    assert await ids.first.bounding_box() == box
    await page.locator("#new-runs a").click()
    await expect(ids.first).to_have_text("nova-3")


async def test_failures_come_first_and_filters_are_in_the_address(site: Site) -> None:
    await site.ended(await site.submit(coletas=[{"fonte": "falha", "max_tentativas": 1}], correlation_id="falhou"))
    for n in range(3):
        await site.ended(await site.submit(coletas=[{"fonte": "eco"}], correlation_id=f"boa-{n}"))
    page = await site.open("/runs")
    await expect(page.locator("tbody.pinned")).to_contain_text("falhou")
    assert (await page.locator("[data-row] a.id").all_text_contents())[0] == "falhou"
    await page.get_by_label("Source").fill("eco")
    await page.locator(".filters label", has_text="completed").click()
    await page.get_by_role("button", name="Filter").click()
    assert "status=concluida" in page.url and "fonte=eco" in page.url
    await expect(page.locator("[data-row]")).to_have_count(3)
    await page.goto(f"{site.url}/runs?fonte=%3Cb%3E")
    await expect(page.locator("[role=alert].alert")).to_contain_text("query.fonte")


async def test_a_dead_letter_is_corrected_and_taken_in(site: Site) -> None:
    name = await site.submit(coletas=[{"fonte": "ninguem"}], correlation_id="quer resposta")
    answer: dict[str, Any] = {
        "correlation_id": "errada",
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": "ninguem", "status": "ok", "dados": [1]},
        "timestamp": "2026-11-15T12:00:00Z",
    }
    for n in range(3):
        await site.client.post("/api/v1/results", json=[{**answer, "correlation_id": f"errada-{n}"}])
    page = await site.open("/dead-letters")
    await expect(page.locator(".group-card")).to_contain_text("unknown_correlation")
    await page.locator("[data-row] [data-open-row]").first.click()
    await expect(page.locator(".hex")).to_contain_text('{"correlation_id')
    editor = page.locator("#corpo")
    await editor.fill(json.dumps({**answer, "correlation_id": "outra errada"}))
    await page.get_by_role("button", name="Requeue corrected").click()
    await expect(page.locator("[role=alert].alert")).to_contain_text("Refused again")
    await editor.fill(json.dumps({**answer, "correlation_id": name}))
    await page.get_by_role("button", name="Requeue corrected").click()
    await expect(page.locator(".flash")).to_contain_text("1 taken in again")
    assert (await site.ended(name))["coletas"][0]["dados"] == [1]
    await page.get_by_role("button", name="Discard 2").click()
    await expect(page.locator("#dialog")).to_contain_text("This will discard 2 messages")
    await page.locator("#dialog").get_by_role("button", name="Discard 2").click()
    await expect(page.locator(".empty")).to_contain_text("No dead letters")
    assert await site.oraculo.store.dead_letters() == []


async def test_a_letter_is_requeued_as_it_is(site: Site) -> None:
    body = {"correlation_id": "mais tarde", "tipo_evento": "resultado_coleta", "timestamp": "2026-11-15T12:00:00Z"}
    await site.client.post("/api/v1/results", json=[{**body, "payload": {"fonte": "ninguem", "dados": 5}}])
    name = await site.submit(coletas=[{"fonte": "ninguem"}], correlation_id="mais tarde")
    page = await site.open("/dead-letters")
    await page.get_by_label("All on this page").check()
    await page.locator("#bulk button", has_text="Requeue").click()
    await page.locator("#dialog").get_by_role("button", name="Requeue 1").click()
    await expect(page.locator(".flash")).to_contain_text("1 taken in again")
    assert (await site.ended(name))["coletas"][0]["dados"] == 5


async def test_language_theme_and_keys(site: Site) -> None:
    await site.ended(await site.submit(coletas=[{"fonte": "eco"}], correlation_id="uma"))
    await site.ended(await site.submit(coletas=[{"fonte": "eco"}], correlation_id="outra"))
    page = await site.open("/runs")
    await expect(page.locator("h1")).to_have_text("Orchestrations")
    await page.get_by_title("Português").click()
    await expect(page.locator("h1")).to_have_text("Orquestrações")
    assert await page.locator("html").get_attribute("lang") == "pt-BR"
    await page.get_by_label("Tema escuro").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 24)"
    await page.get_by_label("Tema claro").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.wait_for_selector("html[data-ready]")  # to switch is to load the page anew
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.locator("tr.here")).to_contain_text("uma")
    await page.keyboard.press("k")
    await expect(page.locator("tr.here")).to_contain_text("outra")
    await page.keyboard.press("?")
    await expect(page.locator("#help")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await expect(page.locator("#search")).to_be_focused()
    await page.keyboard.type("outra")
    await page.keyboard.press("Enter")
    await ready(page)
    assert page.url.endswith("/runs/outra")


async def test_the_language_of_the_browser(site: Site) -> None:
    page = await site.open("/", locale="pt-PT")
    await expect(page.locator("h1")).to_have_text("Visão geral")
    await expect(page.locator(".empty")).to_contain_text("oraculo worker")


async def test_the_overview(site: Site) -> None:
    await site.ended(await site.submit(coletas=[{"fonte": "falha", "max_tentativas": 1}], correlation_id="mal"))
    await site.submit(coletas=[{"fonte": "espera"}], correlation_id="pressa", timeout_s=25)
    page = await site.open("/?window=1h")
    await page.wait_for_selector("[data-scatter][data-ready]")
    await expect(page.locator("#t-flight strong")).to_have_text("1")
    await expect(page.locator("#figures")).to_contain_text("escavador_falha")
    await expect(page.locator("#figures tr", has_text="pressa")).to_contain_text("at risk")
    await expect(page.locator("#figures")).to_contain_text("power-safe")
    await expect(page.locator("#scatter-note")).to_have_text("2 orchestrations")
    await site.submit(coletas=[{"fonte": "espera"}])
    await expect(page.locator("#t-flight strong")).to_have_text("2")


async def test_workers_and_queues(site: Site) -> None:
    await site.submit(coletas=[{"fonte": "ninguem"}, {"fonte": "espera"}])
    await site.curl.lease("escavador_alheio", wait=0)
    page = await site.open("/workers")
    await expect(page.locator("tr", has_text="do-teste")).to_contain_text("escavador_espera")
    await expect(page.locator("tr", has_text="curl")).to_contain_text("over HTTP")
    await expect(page.locator("tr", has_text="escavador_ninguem")).to_contain_text("nobody consumes it")


async def test_a_result_names_a_file(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "arquivos"
    folder.mkdir()
    (folder / "relatório.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "segredo").write_text("nao")
    (folder / "atalho").symlink_to(tmp_path / "segredo")
    named = [str(folder / "relatório.pdf"), "../segredo", "atalho", "/etc/passwd", "falta.pdf"]
    async with running(browser, tmp_path, ORACULO_ARTEFATOS=str(folder)) as site:
        name = await site.submit(coletas=[{"fonte": "eco", "parametros": {"arquivos": named}}])
        await site.ended(name)
        page = await site.open(f"/runs/{name}")
        await expect(page.locator("#documents a[download]", has_text="Download")).to_have_count(1)
        await page.get_by_role("tab", name="Data").click()
        async with page.expect_download() as coming:
            await page.locator("#documents a[download]", has_text="Download").click()
        download = await coming.value
        assert download.suggested_filename == "relatório.pdf"
        assert Path(await download.path()).read_bytes() == b"%PDF-1.7"  # noqa: ASYNC240
        for number in range(1, 6):
            assert (await site.client.get(f"/runs/{name}/artifacts/{number}")).status_code == 404


async def test_a_wide_run_is_folded(site: Site) -> None:
    name = await site.submit(
        coletas=[{"fonte": "eco", "parametros": {"n": n}} for n in range(300)]
        + [{"fonte": "falha", "max_tentativas": 1}],
        execucoes=[{"executador": "soma"}],
    )
    await site.ended(name)
    page = await site.open(f"/runs/{name}")
    await ready(page)
    await expect(page.locator(".dag .node")).to_have_count(4)  # two queues, the fan-in, the execution
    await expect(page.locator(".dag .node", has_text="escavador_eco")).to_contain_text("300 completed")
    assert await page.locator("[data-gantt] .grow").count() < 60
    await page.locator("[data-filter=failed]").click()
    await expect(page.locator("[data-gantt] .grow")).to_have_count(1)
    await expect(page.locator("[data-gantt] .grow")).to_contain_text("a fonte respondeu 503")
    await page.locator("[data-filter=all]").click()
    await page.locator(".dag .node", has_text="escavador_eco").click()
    await expect(page.locator("[data-filter=all]")).to_contain_text("300")


async def test_copied_as_curl_and_as_command_line(site: Site) -> None:
    name = await site.submit(coletas=[{"fonte": "eco"}], correlation_id="it's; $(here) --x")
    reader = await site.reader(site.url)
    await reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await reader.open("/runs/it%27s%3B%20%24%28here%29%20--x")
    await ready(page)
    await page.locator(".menu summary").click()
    await page.get_by_role("button", name="curl", exact=True).click()
    await expect(page.locator("#toast")).to_have_text("Copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == f"curl {site.url}/api/v1/orchestrations/it%27s%3B%20%24%28here%29%20--x"
    await page.get_by_role("button", name="CLI", exact=True).click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"ORACULO_URL=\S+ oraculo watch 'it'\"'\"'s; \$\(here\) --x'", copied), copied
    assert name
