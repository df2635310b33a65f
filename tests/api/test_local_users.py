"""People with a password: the way in, what they may do, and how a session ends."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from api.conftest import API, ONE, Start, assert_problem
from api.test_plans import plan, task
from oraculo.core.access import LOCAL, AccessRole
from oraculo.errors import StoreError, UnknownIdError, WireError
from oraculo.runtime import local_users
from oraculo.service import Oraculo

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HTML = {"Accept": "text/html"}
PASSWORD = "cavalo bateria grampo ç"


def oraculo_of(client: httpx2.AsyncClient) -> Oraculo:
    found: Oraculo = client._transport.app.state.oraculo  # type: ignore[attr-defined]
    return found


async def enter(client: httpx2.AsyncClient, name: str, password: str = PASSWORD) -> httpx2.Response:
    return await client.post("/login", content=urlencode({"user": name, "password": password}), headers=FORM)


def token_of(page: str) -> str:
    return page.partition('name="csrf" value="')[2].partition('"')[0]


async def whoami(client: httpx2.AsyncClient) -> dict[str, Any] | None:
    found = await client.get(f"{API}/whoami")
    return found.json() if found.status_code == 200 else None


async def test_a_login_a_session_and_its_end(started: Start) -> None:
    async with started(ORACULO_LOCAL_USERS="on") as client:
        users = oraculo_of(client).users
        assert users is not None
        await users.add("ana", PASSWORD, [AccessRole.LEITOR], by=LOCAL)
        assert await whoami(client) is None  # on loopback, too
        page = (await client.get("/login", headers=HTML)).text
        assert 'name="user"' in page and 'name="password"' in page and 'name="key"' in page
        for name, password in (("ana", "errada"), ("nina", PASSWORD), ("", ""), ("ANA", PASSWORD), ("a" * 99, "x")):
            assert (await enter(client, name, password)).status_code == 403
        assert (await enter(client, "ana")).status_code == 303
        me = await whoami(client)
        assert me is not None and (me["ator"], me["tipo"], me["tenant"]) == ("local:ana", "user", "default")
        assert (await client.get(f"{API}/orchestrations")).status_code == 200
        stolen = dict(client.cookies)
        page = (await client.get("/", headers=HTML)).text
        assert_problem(await client.post(f"{API}/orchestrations", json=ONE), 401, "unauthorized")  # without the token
        out = await client.post("/ui/logout", content=urlencode({"csrf": token_of(page)}), headers=FORM)
        assert out.headers["location"] == "/login"
        client.cookies.update(stolen)
        assert await whoami(client) is None


@pytest.mark.parametrize("how", ["disabled", "removed", "password"])
async def test_sessions_end_with_the_user(started: Start, how: str) -> None:
    async with started(ORACULO_LOCAL_USERS="on") as client:
        oraculo = oraculo_of(client)
        users = oraculo.users
        assert users is not None
        await users.add("ana", PASSWORD, [AccessRole.OPERADOR], by=LOCAL, tenant="acme")
        await enter(client, "ana")
        me = await whoami(client)
        assert me is not None and me["tenant"] == "acme" and "installation:read" not in me["scopes"]
        if how == "disabled":
            await users.disable("ana", by=LOCAL)
        elif how == "removed":
            await users.remove("ana", by=LOCAL)
        else:
            await users.set_password("ana", "outra senha bem longa", by=LOCAL)
        oraculo.keys._sessions.clear()  # as after five seconds
        assert await whoami(client) is None
        if how == "disabled":
            assert (await enter(client, "ana")).status_code == 403
            await users.enable("ana", by=LOCAL)
            assert (await enter(client, "ana")).status_code == 303
        told = [event.body["ator"] for event in await oraculo.store.system_events() if event.kind.startswith("user_")]
        assert told and set(told) == {"local"}
        assert PASSWORD not in str([event.body for event in await oraculo.store.system_events()])


async def test_a_user_does_not_approve_what_the_user_submitted(started: Start) -> None:
    async with started(ORACULO_LOCAL_USERS="on", ORACULO_FLOW_C="on") as client:
        users = oraculo_of(client).users
        assert users is not None
        for name in ("ana", "rui"):
            await users.add(name, PASSWORD, [AccessRole.OPERADOR], by=LOCAL)

        async def post(path: str, body: Any) -> httpx2.Response:
            token = token_of((await client.get("/", headers=HTML)).text)
            return await client.post(f"{API}{path}", json=body, headers={"X-CSRF-Token": token})

        await enter(client, "ana")
        approved = {"approval_status": "approved", "requires_approval": True, "correlation_id": "dela"}
        taken = await post("/plans", plan("p1", task("a"), **approved))
        assert taken.json()["status"] == "awaiting_approval"  # what the document says of itself is not believed
        assert_problem(await post("/orchestrations/dela/approve", {"por": "ceo"}), 409, "own_plan")
        client.cookies.clear()
        await enter(client, "rui")
        assert (await post("/orchestrations/dela/approve", {"por": "rui"})).status_code == 200
        journal = (await client.get(f"{API}/orchestrations/dela/events")).text
        assert '"local:ana"' in journal and '"local:rui"' in journal


async def test_passwords_are_guessed_slowly_and_nobody_waits_for_long(
    started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started(ORACULO_LOCAL_USERS="on") as client:
        users = oraculo_of(client).users
        assert users is not None
        monkeypatch.setattr(users, "_verify", lambda _user, _password: False)
        for _ in range(20):
            assert (await enter(client, "ana", "x")).status_code == 403
        assert (await enter(client, "ana")).status_code == 429
        monkeypatch.setattr(local_users, "CHECKS_WAITING_MAX", 0)
        with pytest.raises(StoreError, match="too many logins"):
            await users.check("ana", "x")


async def test_users_that_cannot_be(started: Start) -> None:
    async with started(ORACULO_LOCAL_USERS="on") as client:
        users = oraculo_of(client).users
        assert users is not None
        wrong: list[tuple[str, str, list[AccessRole], str]] = [
            ("Ana", PASSWORD, [AccessRole.LEITOR], "name"),
            ("", PASSWORD, [AccessRole.LEITOR], "name"),
            ("ana", "curta", [AccessRole.LEITOR], "password: from 12"),
            ("ana", PASSWORD, [], "role"),
            ("ana", PASSWORD, [AccessRole.TRABALHADOR], "workers have keys"),
        ]
        for name, password, roles, says in wrong:
            with pytest.raises(WireError, match=says):
                await users.add(name, password, roles, by=LOCAL)
        await users.add("ana", PASSWORD, [AccessRole.ADMIN], by=LOCAL)
        with pytest.raises(WireError, match="there is a user ana"):
            await users.add("ana", PASSWORD, [AccessRole.ADMIN], by=LOCAL)
        with pytest.raises(UnknownIdError):
            await users.disable("rui", by=LOCAL)
        assert await users.has_administrator()
        (kept,) = await users.all()
        assert kept.password_hash.startswith("$argon2id$") and PASSWORD not in kept.password_hash
        assert "argon2" not in repr(kept)


async def test_without_the_setting_no_user_gets_in(started: Start) -> None:
    async with started(ORACULO_API_KEY="k") as client:
        assert oraculo_of(client).users is None
        assert 'name="user"' not in (await client.get("/login", headers=HTML)).text
        assert (await enter(client, "ana")).status_code == 403
