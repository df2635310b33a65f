"""A browser for all tests here, an orchestrator of its own for each, and a watch on every page: no dialog, no report
of its policy, no error of a script, no request to anybody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from tools.servers.chromium import Chromium

import servers
from api.conftest import CurlWorker, client_of, serving, settings_for
from oraculo import Worker
from oraculo.api.app import create_app
from oraculo.service import Oraculo

PATIENCE_MS = 60_000
# What a browser and htmx say of connections that end and of requests that a newer page made needless.
HARMLESS = ("net::ERR", "status of 4", "htmx:afterRequest", "htmx:sendAbort")
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for the browser and all that talk to it; one worker of pytest-xdist for all of them."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.xdist_group("chromium"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    servers.use("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=Chromium.program(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        await browser.close()


class Watched:
    """Pages of one reader, and what went wrong in them."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.faults: list[str] = []
        self.pages: list[Page] = []

    async def open(self, path: str = "/") -> Page:
        page = await self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("dialog", lambda dialog: self._dialog(dialog))
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("request", self._request)
        self.pages.append(page)
        await page.goto(self.url + path)
        return page

    async def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _console(self, message: Any) -> None:
        if message.type == "error" and not any(text in message.text for text in HARMLESS):
            self.faults.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.faults.append(f"request: {request.url}")

    async def check(self) -> None:
        for page in self.pages:
            if not page.is_closed() and page.url.startswith("http"):
                self.faults += [f"policy: {one}" for one in await page.evaluate("window.violations ?? []")]
        assert not self.faults, "; ".join(self.faults)


Reader = Callable[..., Awaitable[Watched]]


@asynccontextmanager
async def readers(browser: Browser) -> AsyncIterator[Reader]:
    """`await reader(url)`: somebody with a browser, watched until the end of the block."""
    watched: list[Watched] = []

    async def reader(url: str, **options: Any) -> Watched:
        context = await browser.new_context(**{"locale": "en-US", **options})
        await context.add_init_script(WATCH)
        one = Watched(context, url)
        watched.append(one)
        return one

    try:
        yield reader
        for one in watched:
            await one.check()
    finally:
        for one in watched:
            await one.context.close()


class Site:
    """An orchestrator with its pages, and a reader of them."""

    def __init__(self, oraculo: Oraculo, url: str, client: httpx2.AsyncClient, reader: Reader) -> None:
        self.oraculo = oraculo
        self.url = url
        self.client = client
        self.reader = reader
        self.curl = CurlWorker(client)
        self.gate = asyncio.Event()

    async def open(self, path: str = "/", **options: Any) -> Page:
        return await (await self.reader(self.url, **options)).open(path)

    async def submit(self, **request: Any) -> str:
        accepted = await self.oraculo.submit(request)
        return accepted.correlation_id

    async def ended(self, name: str) -> dict[str, Any]:
        result = await self.oraculo.result(name, wait=20)
        assert result is not None
        return result


def workers() -> tuple[Worker, asyncio.Event]:
    worker, gate = Worker(name="do-teste"), asyncio.Event()

    @worker.escavador("eco")
    async def eco(parametros: dict[str, Any]) -> Any:
        return parametros

    @worker.escavador("espera")
    async def espera(parametros: dict[str, Any]) -> Any:
        await gate.wait()
        return parametros

    @worker.escavador("falha")
    async def falha(parametros: dict[str, Any], tentativa: int) -> Any:
        if tentativa < parametros.get("ok_na", 99):
            raise ValueError(parametros.get("mensagem", "a fonte respondeu 503"))
        return tentativa

    @worker.executador("soma")
    def soma(dados: list[Any]) -> Any:
        return {"total": len(dados)}

    return worker, gate


@asynccontextmanager
async def running(browser: Browser, folder: Path, **variables: str) -> AsyncIterator[Site]:
    worker, gate = workers()
    oraculo = Oraculo(settings_for(folder, **variables), workers=[worker])
    app = create_app(oraculo)
    async with oraculo, client_of(app) as client, serving(app) as url, readers(browser) as reader:
        site = Site(oraculo, url, client, reader)
        site.gate = gate
        yield site
        gate.set()


@pytest_asyncio.fixture(loop_scope="session")
async def site(browser: Browser, tmp_path: Path) -> AsyncIterator[Site]:
    async with running(browser, tmp_path) as site:
        yield site
