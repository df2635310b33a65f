"""Pages over HTTP: who may see them, who may act, what they say when something is wrong."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from api.conftest import BOTH, Start, app, client, client_of, oraculo, settings_for, started  # noqa: F401
from api.test_operation import Elements, assert_self_contained
from oraculo.api.app import create_app
from oraculo.api.session import Sessions
from oraculo.dashboard.forms import checked
from oraculo.dashboard.routes import ROUTERS
from oraculo.service import Oraculo

KEY = "orc_test_chave-secreta"
HTML = {"Accept": "text/html,application/xhtml+xml"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PAGES = ("/", "/?window=7d", "/runs", "/runs/abc", "/schedules", "/dead-letters", "/workers", "/security", "/new",
         "/new?from=abc")  # fmt: skip
ACTIONS = [
    "/ui/runs/cancel", "/ui/runs/retry", "/ui/dead-letters/requeue", "/ui/dead-letters/discard",
    "/ui/dead-letters/1/edited", "/ui/new/preview", "/ui/new/submit", "/ui/preferences", "/ui/logout",
    "/ui/schedules/pause",
]  # fmt: skip


def token_of(response: httpx2.Response) -> str:
    found = re.search(r'<meta name="csrf" content="([0-9a-f]*)"', response.text)
    assert found
    return found[1]


async def post(
    sender: httpx2.AsyncClient, path: str, token: str, headers: dict[str, str] | None = None, **fields: Any
) -> httpx2.Response:
    body = urlencode({"csrf": token, **fields}, doseq=True)
    return await sender.post(path, content=body, headers={**FORM, **HTML, **(headers or {})})


async def test_every_page_is_self_contained(client: httpx2.AsyncClient) -> None:  # noqa: F811
    await client.post("/api/v1/orchestrations", json={**BOTH, "correlation_id": "abc"})
    for path in PAGES:
        response = await client.get(path, headers=HTML)
        assert_self_contained(response)
        policy = response.headers["content-security-policy"]
        for part in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "require-trusted-types-for 'script'",
        ):
            assert part in policy
        labels = {found.get("for") for tag, found in Elements(response.text).seen if tag == "label"}
        assert labels is not None and "<h1" in response.text


async def test_the_first_page_teaches_the_next_command(client: httpx2.AsyncClient) -> None:  # noqa: F811
    response = await client.get("/", headers=HTML)
    assert "oraculo worker oraculo.collectors.all:worker" in response.text
    assert "curl -X POST http://oraculo.test/api/v1/orchestrations" in response.text
    assert "oraculo worker oraculo.collectors.all:worker" in (await client.get("/runs", headers=HTML)).text
    assert "oraculo worker" in (await client.get("/workers", headers=HTML)).text
    assert "oraculo dlq" in (await client.get("/dead-letters", headers=HTML)).text


async def test_problems_are_pages_for_people_and_documents_for_programs(client: httpx2.AsyncClient) -> None:  # noqa: F811
    page = await client.get("/runs/nada%3Cb%3E", headers=HTML)
    assert page.status_code == 404 and "unknown_id" in page.text and "&lt;b&gt;" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert (await client.get("/runs/nada")).json()["code"] == "unknown_id"
    assert (await client.get("/api/v1/orchestrations/nada", headers=HTML)).json()["code"] == "unknown_id"


# -- actions -----------------------------------------------------------------------------------------------------------


def test_every_action_is_checked() -> None:
    """By the route itself: whoever adds one cannot forget it."""
    unsafe = []
    for router in ROUTERS:
        for route in router.routes:
            if route.methods - {"GET", "HEAD"}:  # type: ignore[attr-defined]
                calls = [one.call for one in route.dependant.dependencies]  # type: ignore[attr-defined]
                unsafe.append(route.path)  # type: ignore[attr-defined]
                assert checked in calls or route.path == "/login", route.path  # type: ignore[attr-defined]
                assert route.path.startswith("/ui/") or route.path == "/login"  # type: ignore[attr-defined]
    assert len(unsafe) >= 8


@pytest.mark.parametrize("path", ACTIONS)
async def test_no_other_site_can_act(client: httpx2.AsyncClient, path: str) -> None:  # noqa: F811
    token = token_of(await client.get("/runs", headers=HTML))
    assert token
    shapes: list[tuple[dict[str, str], str]] = [
        ({}, ""),  # no token
        ({}, "0" * 64),
        ({"Origin": "https://evil.example"}, token),
        ({"Origin": "null"}, token),
        ({"Sec-Fetch-Site": "cross-site"}, token),
        ({"Sec-Fetch-Site": "same-site"}, token),
        ({"Content-Type": "text/plain"}, token),
        ({"Cookie": ""}, token),  # the token of another browser
    ]
    for headers, sent in shapes:
        response = await post(client, path, sent, headers)
        assert response.status_code in (403, 415), (path, headers)


async def test_schedules_are_shown_paused_and_started(client: httpx2.AsyncClient) -> None:  # noqa: F811
    agenda = {"cron": "0 6 * * *", "fuso": "UTC", "requisicao": BOTH}
    assert (await client.put("/api/v1/schedules/diario", json=agenda)).status_code == 201
    page = await client.get("/schedules", headers=HTML)
    assert page.text.count("T06:00:00") >= 10 and "diario" in page.text
    token = token_of(page)
    assert (await post(client, "/ui/schedules/pause", token, nome="diario", motivo="<b>fonte</b>")).status_code == 303
    assert "&lt;b&gt;fonte" in (await client.get("/schedules", headers=HTML)).text
    begun = await post(client, "/ui/schedules/trigger", token, nome="diario")
    assert begun.status_code == 303 and begun.headers["location"].startswith("/runs/diario%40")
    await post(client, "/ui/schedules/resume", token, nome="diario")
    assert (await client.get("/api/v1/schedules/diario")).json()["pausada"] is None
    assert (await post(client, "/ui/schedules/nada", token, nome="diario")).status_code == 404


async def test_a_token_is_of_one_session(client: httpx2.AsyncClient) -> None:  # noqa: F811
    mine = token_of(await client.get("/runs", headers=HTML))
    client.cookies.clear()
    assert token_of(await client.get("/runs", headers=HTML)) != mine
    assert (await post(client, "/ui/preferences", mine)).status_code == 403


async def test_a_form_leads_nowhere_else(client: httpx2.AsyncClient) -> None:  # noqa: F811
    token = token_of(await client.get("/runs", headers=HTML))
    for where in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        response = await post(client, "/ui/preferences", token, back=where, oraculo_theme="dark")
        assert (response.status_code, response.headers["location"]) == (303, "/")


async def test_a_forged_flash_says_nothing(client: httpx2.AsyncClient) -> None:  # noqa: F811
    for value in ("x", "e30=", "WyJjYW5jZWxsZWQiLCB7fV0=", "WyJfX2NsYXNzX18iLCB7fV0=", "WzEsMl0="):
        response = await client.get("/runs", headers={**HTML, "Cookie": f"oraculo_flash={value}"})
        assert response.status_code == 200 and 'class="flash"' not in response.text


async def test_bad_requests_are_refused_clearly(client: httpx2.AsyncClient) -> None:  # noqa: F811
    token = token_of(await client.get("/runs", headers=HTML))
    for path in ("/ui/runs/destroy", "/ui/dead-letters/destroy"):
        assert (await post(client, path, token)).status_code == 404
    assert (await post(client, "/ui/dead-letters/discard", token)).status_code == 422
    assert (await post(client, "/ui/dead-letters/99/edited", token)).status_code == 404
    refused = await post(client, "/ui/new/submit", token, text='{"coletas": []}')
    assert refused.status_code == 422 and "both empty" in refused.text
    for query in ("status=nada", "fonte=a%20b", "since=ontem", "cursor=x", "fonte=a&executador=b"):
        response = await client.get(f"/runs?{query}", headers=HTML)
        assert response.status_code == 422 and 'role="alert"' in response.text, query


# -- keys --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def keyed(folder: Path, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    oraculo = Oraculo(settings_for(folder, ORACULO_API_KEY=KEY))  # noqa: F811
    async with oraculo, client_of(create_app(oraculo), **options) as client:  # noqa: F811
        yield client


async def test_with_a_key_a_browser_is_shown_the_way_in(tmp_path: Path) -> None:
    async with keyed(tmp_path) as client:  # noqa: F811
        asked = await client.get("/runs?status=erro", headers=HTML)
        assert asked.status_code == 303
        assert asked.headers["location"] == "/login?next=%2Fruns%3Fstatus%3Derro"
        page = await client.get(asked.headers["location"], headers=HTML)
        assert page.status_code == 200 and KEY not in page.text
        wrong = await client.post("/login", content=urlencode({"key": "errada"}), headers=FORM)
        assert wrong.status_code == 403 and "set-cookie" not in wrong.headers
        foreign = {**FORM, "Origin": "https://evil.example"}
        assert (await client.post("/login", content=urlencode({"key": KEY}), headers=foreign)).status_code == 403
        right = await client.post("/login", content=urlencode({"key": KEY, "next": "/runs?status=erro"}), headers=FORM)
        assert (right.status_code, right.headers["location"]) == (303, "/runs?status=erro")
        cookie = right.headers["set-cookie"]
        assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower() and KEY not in cookie
        assert (await client.get("/runs", headers=HTML)).status_code == 200


async def test_a_session_reads_everything_and_changes_nothing_without_its_token(tmp_path: Path) -> None:
    async with keyed(tmp_path) as client:  # noqa: F811
        await client.post("/login", content=urlencode({"key": KEY}), headers=FORM)
        token = token_of(await client.get("/runs", headers=HTML))
        assert (await client.get("/api/v1/orchestrations")).status_code == 200
        assert (await client.post("/api/v1/orchestrations", json=BOTH)).status_code == 401
        assert (await client.delete("/api/v1/dead-letters?motivo=x")).status_code == 401
        sent = await client.post("/api/v1/orchestrations", json=BOTH, headers={"X-CSRF-Token": token})
        assert sent.status_code == 202
        assert (await post(client, "/ui/new/submit", "", text="{}")).status_code == 403
        stolen = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        out = await post(client, "/ui/logout", token)
        assert out.headers["location"] == "/login"
        assert (await client.get("/api/v1/orchestrations", headers={"Cookie": stolen})).status_code == 401
        assert (await client.get("/runs", headers=HTML)).status_code == 303


async def test_over_tls_the_cookie_belongs_to_the_host(tmp_path: Path) -> None:
    async with keyed(
        tmp_path,
    ) as client:  # noqa: F811
        right = await client.post("https://test/login", content=urlencode({"key": KEY}), headers=FORM)
        assert right.headers["set-cookie"].startswith("__Host-") and "Secure" in right.headers["set-cookie"]


def test_sessions_cannot_be_forged() -> None:
    sessions = Sessions(KEY)
    cookie = sessions.issue()
    assert sessions.read(cookie)
    identity, expires, signature = cookie.split(".")
    assert Sessions(KEY + "x").read(cookie) is None
    for forged in (
        "",
        ".",
        "..",
        "a.b.c",
        f"{identity}.{int(expires) + 1}.{signature}",
        f"{identity}.1.{signature}",
        signature,
        cookie[:-1],
    ):
        assert sessions.read(forged) is None
