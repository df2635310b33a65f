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
    await waits.get_by_label("Your name").fill("ana")
    await waits.get_by_role("button", name="Approve").click()
    await expect(waits).to_contain_text("waits for the signal revisao")
    await expect(page.locator("[data-journal]")).to_contain_text("ok approved by ana")
    await waits.get_by_label("Data (JSON)").fill('{"nota": 7}')
    await waits.get_by_role("button", name="Send the signal").click()
    await expect(page.locator("[data-status]")).to_contain_text("concluded")
    await expect(waits.locator("form")).to_have_count(0)
    assert (await site.ended(name))["saida"] == 7
