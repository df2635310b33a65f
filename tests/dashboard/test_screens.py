"""Every page as it looks: nothing runs out of the page, no text lies on another, none is cut without a sign, contrast
holds in both themes, and what is said in both languages alike is data. ORACULO_SCREENS=folder keeps pictures of all."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from dashboard.scene import PATHS, furnished
from dashboard.test_pages import HTML

WIDTHS = {"desktop": 1440, "tablet": 834, "phone": 390}
THEMES = ("light", "dark")
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
CONTRAST = """async () => (
  await axe.run(document, {resultTypes: ["violations"], runOnly: ["color-contrast"]})).violations
  .flatMap((one) => one.nodes.slice(0, 5).map((node) => "low contrast: " + node.html.slice(0, 160)))"""
LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")


async def settled(page: Page, path: str) -> None:
    await page.wait_for_selector("html[data-ready]" if path != "/docs" else "main")
    if path.startswith("/runs/") and path != "/runs/nada":
        await page.wait_for_selector("[data-run][data-ready]")
        await page.wait_for_selector("#documents .json", state="attached")
    if path.endswith("ticket="):
        await page.locator("[data-gantt] .grow").nth(1).click()
        await page.wait_for_selector("#ticket .attempts, #ticket .side-by-side")
    await page.evaluate("document.fonts.ready")


@pytest.mark.timeout(1200)  # 23 pages, three widths, two themes
@pytest.mark.parametrize("locale", ["en-US", "pt-BR"])
async def test_every_page_is_in_order(browser: Browser, tmp_path: Path, locale: str) -> None:
    keep = os.environ.get("ORACULO_SCREENS")
    found: list[str] = []
    async with furnished(browser, tmp_path) as site:
        someone = await site.reader(site.url, locale=locale)
        page = await someone.open("/")
        await page.wait_for_selector("html[data-ready]")
        for name, path in PATHS.items():
            await page.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
            await page.goto(site.url + path)
            await settled(page, path)
            await page.evaluate(AXE)
            for size, width in WIDTHS.items():
                await page.set_viewport_size({"width": width, "height": 900})
                found += [f"{name} {size}: {one}" for one in await page.evaluate(LOOK)]
                for theme in THEMES:
                    await page.emulate_media(color_scheme=theme)
                    if size == "desktop":
                        found += [f"{name} {theme}: {one}" for one in await page.evaluate(CONTRAST)]
                    if keep:
                        await page.screenshot(path=f"{keep}/{locale[:2]}-{name}-{size}-{theme}.png", full_page=True)
    assert not found, "\n".join(found)


# What is said alike in both languages and is no text of ours: what people and workers wrote, and names of formats.
DATA = re.compile(
    r"HTTP 503|Comprar 12|em conserto|em manutenção|mudança de servidor|oraculo |curl |[{}\"]|/api/|sem resposta"
    r"|a fonte respondeu|application/|^[\w.~:/+#-]+$"
)
# The reference of the API is in English, as its names are; in the record of acts stand the fields as they were sent.
ENGLISH_ONLY = ("docs", "problems", "security", "missing")


async def test_what_both_languages_say_alike_is_data(browser: Browser, tmp_path: Path) -> None:
    async with furnished(browser, tmp_path) as site:
        alike: list[str] = []
        for name, path in PATHS.items():
            if name in ENGLISH_ONLY:
                continue
            english, portuguese = [
                lines_of((await site.client.get(path, headers={**HTML, "Accept-Language": one})).text)
                for one in ("en", "pt-BR")
            ]
            alike += [f"{name}: {line}" for line in sorted(english & portuguese) if not DATA.search(line)]
        assert not alike, "\n".join(alike)


def lines_of(page: str) -> set[str]:
    """The texts of a page that have two words or more, without scripts and commands."""
    bare = re.sub(r"<(script|style|code|pre|textarea|title)\b.*?</\1>", "", page, flags=re.DOTALL)
    texts = (unescape(one).strip() for one in re.findall(r">([^<>]+)<", bare))
    return {one for one in texts if len(re.findall(r"[A-Za-zÀ-ÿ]{2,}", one)) > 1}
