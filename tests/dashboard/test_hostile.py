"""Everything that came from a message is text, in every field of every page."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, Page, expect

from api.conftest import result_of
from api.test_operation import Elements
from dashboard.conftest import Site, running
from dashboard.hostile import STRINGS
from oraculo.api.paths import segment
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch

ALL = "hostis"


def test_there_are_150_and_each_is_another() -> None:
    assert len(STRINGS) == len(set(STRINGS)) == 150
    assert max(map(len, STRINGS)) <= 128


async def elements(site: Site, path: str, status: int = 200) -> list[tuple[str, list[str]]]:
    """The elements of a page and the names of their attributes, without those whose number follows from the text."""
    response = await site.client.get(path, headers={"Accept": "text/html"})
    assert response.status_code == status, (path, response.text[-500:])
    found = Elements(response.text).seen
    return [
        (tag, sorted(names)) for tag, names in found if "checked" not in names and tag not in ("div", "span", "code")
    ]


async def tries(page: Page, shown: str | None = None) -> None:
    """Nothing of it became an element or ran; and it is there to be read."""
    assert await page.evaluate("[window.owned ?? null, document.querySelectorAll('[data-owned]').length]") == [None, 0]
    if shown is not None:
        assert shown in await page.locator("h1").text_content()


async def test_150_hostile_strings_in_every_field(browser: Browser, tmp_path: Path) -> None:
    async with running(browser, tmp_path, ORACULO_ARTEFATOS=str(tmp_path)) as site:
        oraculo = site.oraculo
        # ids, parameters, reasons of cancelling, workers
        await oraculo.submit_many(
            [
                {"coletas": [{"fonte": "ninguem", "parametros": {text: text}}], "correlation_id": text}
                for text in STRINGS
            ]
        )
        await asyncio.gather(*(oraculo.cancel(text, text) for text in STRINGS))
        for text in STRINGS[::3]:
            await site.client.post("/api/v1/queues/escavador_alheio/lease", json={"wait": 0, "worker": text[:200]})
        # errors, answers, late answers, files that results name
        coletas = [{"fonte": "mau", "parametros": {"t": text}, "max_tentativas": 1} for text in STRINGS]
        await site.submit(coletas=coletas, correlation_id=ALL, timeout_s=600)
        answers: list[dict[str, Any]] = []
        for leased in await site.curl.take("escavador_mau", len(STRINGS)):
            order = leased["mensagem"]
            text = order["payload"]["parametros"]["t"]
            erros = [{"codigo": text, "mensagem": text, "definitivo": True}]
            answers.append(result_of(order, status="erro", erros=erros, dados={text: [text], "arquivo": text}))
            answers.append(result_of({**order, "ticket_id": order["ticket_id"]}, dados={text: text}))
        await site.curl.answer(*answers[::2])
        await site.curl.answer(*answers[1::2])
        late = [  # to tickets that were cancelled
            {
                "correlation_id": text,
                "tipo_evento": "resultado_coleta",
                "payload": {"fonte": "ninguem", "status": "ok", "dados": {text: text}},
                "timestamp": "2026-11-15T12:00:00Z",
            }
            for text in STRINGS
        ]
        assert (await site.curl.answer(*late))["aceitos"] == len(STRINGS)
        # dead letters: reason, detail, headers, origin, bytes; and what operators gave as a reason
        letters = [
            DeadLetter(text, text, text, json.dumps({text: text}).encode(), text, {text: text}) for text in STRINGS
        ]
        assert oraculo.store is not None
        await oraculo.store.append(Batch(oraculo.now(), dead=letters))
        await site.client.delete("/api/v1/dead-letters/1", params={"motivo": STRINGS[0]})

        reader = await site.reader(site.url)
        page = await reader.open("/?window=1h")
        await page.wait_for_selector("[data-scatter][data-ready]")
        await tries(page)
        for path in ("/runs", "/dead-letters"):
            await page.goto(site.url + path)
            await tries(page)
            while await page.locator("a[rel=next]").count():
                await page.locator("a[rel=next]").click()
                await tries(page)
        await page.goto(f"{site.url}/workers")
        await tries(page)

        await page.goto(f"{site.url}/runs/{ALL}")
        await page.wait_for_selector("[data-run][data-ready]")
        await page.wait_for_selector("#documents .json", state="attached")
        await page.evaluate("for (const part of document.querySelectorAll('[role=tabpanel]')) part.hidden = false")
        for position in range(0, len(STRINGS), 5):  # tickets in their panel
            await page.evaluate(f"htmx.ajax('GET', '/ui/runs/{ALL}/tickets/{position}', '#ticket-body')")
        await page.evaluate(  # every row of the lists, in sight once
            "async () => { for (const box of document.querySelectorAll('[data-gantt], [data-journal]'))"
            " for (let top = 0; top < box.scrollHeight; top += 300) {"
            " box.scrollTop = top; await new Promise(requestAnimationFrame); } }"
        )
        await tries(page, ALL)

        for text in STRINGS[::15]:
            await page.goto(f"{site.url}/runs/{segment(text)}", wait_until="commit")
            await page.wait_for_selector("[data-run][data-ready]", state="attached")
            await tries(page, text.replace("\r\n", "\n"))
        for number in range(2, len(STRINGS) + 1, 15):
            await page.goto(f"{site.url}/dead-letters/{number}", wait_until="commit")
            await page.wait_for_selector("footer.foot")
            await tries(page)
        await page.goto(f"{site.url}/new")
        for start in range(0, len(STRINGS), 50):  # what a reader types comes back, beside the field it is about
            wrong = {text: 1 for text in STRINGS[start : start + 50]}
            await page.locator("#text").fill(json.dumps({"coletas": [wrong], "notificar": wrong}))
            await expect(page.locator("#preview [data-field]")).to_have_count(50)
            await tries(page)

        # The others are the same page with another text in it: the same elements, in the same order.
        plain = await site.submit(coletas=[{"fonte": "ninguem"}], correlation_id="inocente")
        await oraculo.cancel(plain, "x")
        expected = await elements(site, "/runs/inocente")
        for text in STRINGS:
            assert await elements(site, f"/runs/{segment(text)}") == expected, text
        expected = await elements(site, "/dead-letters/2")
        for number in range(3, len(STRINGS) + 1):
            assert await elements(site, f"/dead-letters/{number}") == expected, STRINGS[number - 1]
        expected = await elements(site, f"/ui/runs/{ALL}/tickets/0")
        for position in range(1, len(STRINGS)):
            assert await elements(site, f"/ui/runs/{ALL}/tickets/{position}") == expected, STRINGS[position]
        expected = await elements(site, "/runs?texto=z&fonte=%21&since=x&until=x", 422)
        for text in STRINGS:
            query = urlencode({"texto": f"z{text}", "fonte": f"!{text}", "since": text, "until": text})
            assert await elements(site, f"/runs?{query}", 422) == expected, text
