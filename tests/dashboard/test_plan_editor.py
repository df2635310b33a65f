"""The plan editor: templates, drawing while one types, faults by line, YAML; and the size of pictures."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from dashboard.conftest import Site
from oraculo.dashboard.plan_templates import NAMES, plan_templates
from oraculo.dashboard.texts import plans
from oraculo.plans.source.source_reader import SourceFormat, read_text
from oraculo.plans.words import Words

PLAN = """\
entrada: {n: 2}
tarefas:
  lista: {fonte: eco, parametros: {n: "${{ entrada.n }}"}}
  mapa: {para_cada: [1, 2, 3], faz: {fonte: eco, parametros: {n: "${{ item }}"}}}
  talvez: {fonte: eco, quando: "${{ entrada.n > 5 }}", depende: [lista]}
  ok: {espera: {sinal: segue}, depende: [mapa]}
"""


@pytest.mark.parametrize("words", ["pt", "en"])
def test_every_template_is_a_plan_without_a_fault(words: Words) -> None:
    templates = plan_templates(words)
    assert tuple(templates) == NAMES
    for name, text in templates.items():
        reading = read_text(text.encode(), SourceFormat.YAML)
        assert (reading.faults, reading.request is None) == ((), False), name
        assert ("tarefas:" in text, "tasks:" in text) == (words == "pt", words == "en")
        assert f"new.template.{name}" in plans.EN


async def drawn(page: Page) -> float:
    return float(await page.locator(".dag").get_attribute("width") or 0)


async def test_a_plan_is_drawn_while_one_types_and_started(site: Site) -> None:
    page = await site.open("/new")
    await expect(page.locator("[data-form]")).to_be_visible()
    await page.locator("[data-template]").select_option("map")
    await expect(page.locator("[data-form]")).to_be_hidden()
    await expect(page.locator("#preview .dag")).to_contain_text("resumos")
    assert (await page.locator("#text").input_value()).startswith("input:")

    await page.locator("#text").fill(PLAN.replace("depende: [lista]", "depende: [listas]"))
    fault = page.locator("#preview [data-line]")
    await expect(fault).to_have_text("line 5, column 66")
    await expect(page.locator("#preview .errors")).to_contain_text("did you mean 'lista'?")
    await expect(page.locator("[data-send]")).to_be_disabled()
    await fault.click()
    assert await page.evaluate("document.activeElement.id") == "text"
    chosen = await page.evaluate("document.activeElement.value.slice(document.activeElement.selectionStart)")
    assert chosen.startswith('"listas"') or chosen.startswith("listas")

    await page.locator("#text").fill(PLAN)
    await expect(page.locator("#preview .dag")).to_contain_text("talvez")
    await page.locator("[data-send]").click()
    await page.wait_for_selector("[data-run][data-ready]")
    await expect(page.locator(".dag .node.mapa")).to_contain_text("3 completed")
    await expect(page.locator(".dag .node.n-ignorada")).to_have_count(1)
    await expect(page.locator(".dag .node.espera.n-em_execucao")).to_have_count(1)


async def test_pictures_are_fitted_and_enlarged(site: Site) -> None:
    name = await site.submit(tarefas={f"t{n}": {"fonte": "eco", **({"depende": [f"t{n - 1}"]} if n else {})}
                                      for n in range(12)})  # fmt: skip
    page = await site.open(f"/runs/{name}")
    await page.wait_for_selector("[data-run][data-ready]")
    whole = await drawn(page)
    await page.get_by_role("button", name="Reduce").click()
    assert await drawn(page) == pytest.approx(whole / 1.25, abs=1)
    await page.get_by_role("button", name="Fit").click()
    room = await page.evaluate("document.querySelector('.dag-wrap').clientWidth")
    assert 0 < await drawn(page) <= room < whole
    await page.locator(".dag-wrap").focus()
    await page.keyboard.press("1")
    full = await drawn(page)
    assert full == pytest.approx(whole / 0.6, abs=2)  # it began as small as can be read
    await page.keyboard.press("+")
    assert await drawn(page) > full
