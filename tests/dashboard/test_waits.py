"""What a run waits for, on its page: seen, decided, signalled."""

from __future__ import annotations

from playwright.async_api import expect

from dashboard.conftest import Site


async def test_a_task_is_approved_and_a_signal_is_sent_on_the_page(site: Site) -> None:
    tasks = {
        "ok": {"espera": {"aprovacao": {"pergunta": "pagar <b>5</b>?"}}},
        "fim": {"espera": {"sinal": "revisao"}, "depende": ["ok"]},
    }
    name = await site.submit(tarefas=tasks, saida="${{ fim.dados.nota }}", correlation_id="esperas")
    page = await site.open(f"/runs/{name}")
    waits = page.locator("#waits")
    await expect(waits).to_contain_text("pagar <b>5</b>?")
    await expect(page.locator("[data-why]")).to_contain_text("ok")
    await expect(page.locator(".lane .held")).to_have_count(1)  # no worker has it
    await expect(page.locator(".lane .f-em_execucao")).to_have_count(0)
    await waits.get_by_label("Your name").fill("ana")
    await waits.get_by_role("button", name="Approve").click()
    await expect(waits).to_contain_text("waits for the signal revisao")
    await expect(page.locator("[data-journal]")).to_contain_text("ok approved by ana")
    await waits.get_by_label("Data (JSON)").fill('{"nota": 7}')
    await waits.get_by_role("button", name="Send the signal").click()
    await expect(page.locator("[data-status]")).to_contain_text("completed")
    await expect(waits.locator("form")).to_have_count(0)
    assert (await site.ended(name))["saida"] == 7


async def test_a_command_in_the_sentence_is_shown_as_one(site: Site) -> None:
    name = await site.submit(coletas=[{"fonte": "ninguem"}], correlation_id="sem-worker")
    page = await site.open(f"/runs/{name}")
    await expect(page.locator("[data-why] code")).to_have_text("oraculo worker module:worker")
    await expect(page.locator("[data-why]")).not_to_contain_text("`")


async def test_on_a_phone_the_open_page_is_in_sight_and_sentences_have_two_lines(site: Site) -> None:
    failing = {"fonte": "falha", "max_tentativas": 1, "parametros": {"mensagem": "uma frase longa " * 9}}
    name = await site.submit(coletas=[failing], correlation_id="estreita")
    await site.ended(name)
    page = await site.open("/workers", viewport={"width": 390, "height": 800})
    await expect(page.locator(".nav [aria-current]")).to_be_in_viewport(ratio=0.9)
    await page.goto(f"{site.url}/runs/{name}?tab=events")
    said = page.locator("[data-journal] .say", has_text="uma frase longa")
    height, letters = await said.evaluate("(one) => [one.clientHeight, parseFloat(getComputedStyle(one).fontSize)]")
    assert height >= 2 * letters, "two lines"
