"""The page of keys and acts: administrators see both, auditors the acts, and no page ever shows a secret."""

from __future__ import annotations

import httpx2

from api.conftest import API, Start, client, oraculo, started  # noqa: F401
from api.conftest import app as app
from api.test_keys import ADMIN, SHARED, bearer, made
from api.test_local_users import PASSWORD, enter, oraculo_of
from oraculo.core.access import LOCAL, AccessRole

HTML = {"Accept": "text/html"}
EVIL = "<b>x</b>"


async def test_an_administrator_sees_keys_and_acts(started: Start) -> None:  # noqa: F811
    async with started(ORACULO_API_KEY=SHARED) as client:  # noqa: F811
        worker = await made(client, "trabalhador", queues=["escavador_a"], nota=EVIL)
        sender = await made(client, "remetente", limites={"abertas": 7, "por_segundo": 0.5}, expires_s=3600)
        await client.delete(f"{API}/keys/{worker['id']}", headers=ADMIN)
        page = (await client.get("/security", headers={**ADMIN, **HTML})).text
        for text in (
            worker["id"],
            sender["id"],
            "escavador_a",
            "7 open",
            "0.5 a second",
            "revoked",
            "active",
            "api-key",
        ):
            assert text in page
        assert page.count("key_created") == 2 and page.count("key_revoked") == 1
        assert EVIL not in page and "&lt;b&gt;x&lt;/b&gt;" in page
        for key in (worker, sender):
            assert key["key"][-43:] not in page
        portuguese = (await client.get("/security", headers={**ADMIN, **HTML, "Accept-Language": "pt-BR"})).text
        assert "Quem fez o quê" in portuguese and "revogada" in portuguese and "7 abertas" in portuguese


async def test_an_auditor_sees_acts_and_no_keys(started: Start) -> None:  # noqa: F811
    async with started(ORACULO_API_KEY=SHARED) as client:  # noqa: F811
        auditor = await made(client, "auditor", nota="fiscal")
        page = (await client.get("/security", headers={**bearer(auditor), **HTML})).text
        assert "key_created" in page and 'id="keys-title"' not in page and 'id="acts-title"' in page
        assert 'href="/security"' in page


async def test_who_may_not_see_it_has_no_link_to_it(started: Start) -> None:  # noqa: F811
    async with started(ORACULO_API_KEY=SHARED) as client:  # noqa: F811
        reader = bearer(await made(client, "leitor"))
        assert 'href="/security"' not in (await client.get("/runs", headers={**reader, **HTML})).text
        refused = await client.get("/security", headers={**reader, **HTML})
        assert refused.status_code == 403 and "audit:read" in refused.text
        assert 'href="/security"' not in (await client.get("/login", headers=HTML)).text


async def test_without_a_key_it_is_there_and_says_so(client: httpx2.AsyncClient) -> None:  # noqa: F811
    page = (await client.get("/security", headers=HTML)).text
    assert "You are local." in page and "No key is asked for" in page and "oraculo keys create" in page


async def test_users_and_sessions_are_listed_where_there_are_any(started: Start) -> None:  # noqa: F811
    async with started(ORACULO_LOCAL_USERS="on") as someone:
        users = oraculo_of(someone).users
        assert users is not None
        await users.add("ana", PASSWORD, [AccessRole.ADMIN], by=LOCAL)
        await users.add("bia", PASSWORD, [AccessRole.LEITOR], by=LOCAL, tenant="acme")
        login = (await someone.get("/login", headers=HTML)).text
        assert "<h1>Sign in</h1>" in login and "needs a key" not in login
        assert (await enter(someone, "bia")).status_code == 303  # a session of another tenant
        someone.cookies.clear()
        assert (await enter(someone, "ana")).status_code == 303
        page = (await someone.get("/security", headers=HTML)).text
        assert page.count('<td class="name">ana</td>') == 2 and '<td class="name">bia</td>' not in page
        assert "<td>password</td>" in page and PASSWORD not in page
