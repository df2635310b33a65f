"""The login with an identity provider in a real browser: its rules for cookies on the way between sites are its own."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import uvicorn
from playwright.async_api import Browser, expect
from tools.servers.oidc import Oidc
from tools.servers.server import free_port

from api.conftest import settings_for
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from servers import own


async def test_a_browser_leaves_comes_back_and_stays_in_until_the_logout(browser: Browser, tmp_path: Path) -> None:
    provider = own("oidc", tmp_path)
    assert isinstance(provider, Oidc)
    port = free_port()
    here = f"http://localhost:{port}"  # another site than the provider, which is 127.0.0.1
    provider.redirect_uri = f"{here}/login"
    with provider:
        known = settings_for(
            tmp_path,
            ORACULO_URL=here,
            ORACULO_OIDC_ISSUER=provider.url,
            ORACULO_OIDC_CLIENT_ID="oraculo",
            ORACULO_OIDC_CLIENT_SECRET=Oidc.secret,
        )
        app = create_app(Oraculo(known))
        server = uvicorn.Server(uvicorn.Config(app, ws="none", log_level="critical", timeout_graceful_shutdown=1))
        with socket.create_server(("127.0.0.1", port)) as listener:
            running = asyncio.create_task(server._serve([listener]))
            context = await browser.new_context(locale="en-US")
            try:
                page = await context.new_page()
                await page.goto(f"{here}/runs")
                await page.get_by_role("link", name="Enter with your account").click()
                await page.get_by_role("link", name="Sign in as ana").click()  # the way back begins at another site
                await page.wait_for_url(f"{here}/runs")
                await expect(page.get_by_role("heading", level=1)).to_be_visible()
                answer = await page.request.get(f"{here}/api/v1/whoami")
                assert (await answer.json())["ator"] == "ana+operador"
                await page.get_by_role("button", name="Log out").click()
                await page.wait_for_url(f"{here}/login")
                assert (await page.request.get(f"{here}/api/v1/whoami")).status == 401
            finally:
                await context.close()
                app.state.waits.stop()
                server.should_exit = True
                await running
