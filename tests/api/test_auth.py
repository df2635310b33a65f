"""Who may call: keys, origins, hosts, and where the server may listen."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from api.conftest import API, ONE, Start, assert_problem, settings_for
from oraculo.api.app import ROUTERS
from oraculo.api.auth import check_binding
from oraculo.errors import SettingsError
from waiting import until

KEY = "orc_test_s3cr3t-\u00e7"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": "wrong"},
        {"X-API-Key": ""},
        {"X-API-Key": KEY + "x"},
        {"X-API-Key": KEY[:-1]},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": KEY},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Cookie": f"X-API-Key={KEY}"},
    ],
)
async def test_without_the_key(started: Start, headers: dict[str, str]) -> None:
    async with started(ORACULO_API_KEY=KEY) as client:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        response = await client.get(f"{API}/orchestrations", headers=raw)
        assert_problem(response, 401, "unauthorized")
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert KEY not in response.text
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("header", ["X-API-Key", "Authorization", "authorization bearer"])
async def test_with_the_key(started: Start, header: str) -> None:
    name, _, scheme = header.partition(" ")
    value = KEY if header == "X-API-Key" else f"{scheme or 'Bearer'} {KEY}"
    async with started(ORACULO_API_KEY=KEY) as client:
        response = await client.get(f"{API}/orchestrations", headers=[(name.encode(), value.encode())])
        assert response.status_code == 200


async def test_every_route_but_the_open_ones_needs_it(started: Start) -> None:
    async with started(ORACULO_API_KEY=KEY) as client:
        open_routes = set()
        for router in ROUTERS:
            for route in router.routes:
                for method in route.methods:  # type: ignore[attr-defined]
                    path = route.path.replace("{", "").replace("}", "").replace(":segment", "")  # type: ignore[attr-defined]
                    if (await client.request(method, path)).status_code != 401:
                        open_routes.add(path)
        assert open_routes == {
            "/health", "/ready", "/.well-known/jwks.json", "/login", "/static/version/name:path",
        }  # fmt: skip
        for path in ("/openapi.json", "/nope", "/health/", "//health", "/Health", "/health%2F", "/health/../metrics"):
            assert (await client.get(f"http://oraculo.test{path}")).status_code == 401, path


@pytest.mark.parametrize("name", ["health", "ready", "%2Fhealth", "..%2F..%2F..%2Fhealth", "health%3F"])
async def test_an_id_is_not_an_exemption(started: Start, name: str) -> None:
    async with started(ORACULO_API_KEY=KEY) as client:
        headers = [(b"X-API-Key", KEY.encode())]
        await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "health"}, headers=headers)
        for path in (f"{API}/orchestrations/{name}", f"{API}/orchestrations/{name}/result"):
            assert_problem(await client.get(path), 401, "unauthorized")
        assert (await client.get(f"{API}/orchestrations/health", headers=headers)).status_code == 200


async def test_a_body_is_not_read_without_the_key(started: Start) -> None:
    async with started(ORACULO_API_KEY=KEY) as client:
        assert (await client.post(f"{API}/orchestrations", content=b"x" * 10_000_000)).status_code == 401


# -- without a key: other sites ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
        {"Origin": "http://oraculo.test:81"},
        {"Origin": "http://oraculo.test.evil.com"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_another_site_changes_nothing(client: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "abc"})
    assert_problem(await client.post(f"{API}/orchestrations/abc/cancel", headers=headers), 403, "cross_site")
    assert_problem(await client.delete(f"{API}/dead-letters?fila=x", headers=headers), 403, "cross_site")
    assert (await client.get(f"{API}/orchestrations/abc")).json()["status"] != "cancelada"


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://oraculo.test"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
async def test_this_site_may(client: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    response = await client.post(f"{API}/orchestrations", json=ONE, headers=headers)
    assert response.status_code == 202
    assert not [name for name in response.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "host",
    [
        *("evil.com", "evil.com:8000", "127.0.0.1.evil.com", "evil.com.", "[", "localhost.evil.com"),
        *("attacker.local", "x.internal", "oraculo", "wpad"),  # whoever answers for names in a local network owns these
    ],
)
async def test_a_name_that_somebody_could_own(client: httpx2.AsyncClient, host: str) -> None:
    assert_problem(await client.get("/api/v1/orchestrations", headers={"Host": host}), 421, "wrong_host")


@pytest.mark.parametrize(
    "host",
    ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST", "api.localhost", "10.1.2.3:80", "x.test"],
)
async def test_hosts_that_are_fine(client: httpx2.AsyncClient, host: str) -> None:
    assert (await client.get("/health", headers={"Host": host})).status_code == 200


async def test_the_host_of_oraculo_url(started: Start) -> None:
    async with started(ORACULO_URL="https://oraculo.empresa.com.br") as client:
        assert (await client.get("/health", headers={"Host": "oraculo.empresa.com.br"})).status_code == 200
        assert (await client.get("/health", headers={"Host": "empresa.com.br"})).status_code == 421


# -- where to listen ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_key(tmp_path: Path, host: str) -> None:
    check_binding(settings_for(tmp_path, ORACULO_HOST=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.1", "example.com", "localhost.evil.com", "0", "[::]"])
def test_beyond_loopback_does(tmp_path: Path, host: str) -> None:
    with pytest.raises(SettingsError, match="ORACULO_API_KEY") as refused:
        check_binding(settings_for(tmp_path, ORACULO_HOST=host))
    assert "ORACULO_HOST" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    check_binding(settings_for(tmp_path, ORACULO_HOST=host, ORACULO_API_KEY="k" * 32))
    check_binding(settings_for(tmp_path, ORACULO_HOST=host), lambda: True)


def test_beyond_loopback_the_key_is_long(tmp_path: Path) -> None:
    short = settings_for(tmp_path, ORACULO_HOST="0.0.0.0", ORACULO_API_KEY="segredo-" + "k" * 23)
    with pytest.raises(SettingsError, match="at least 32 characters") as refused:
        check_binding(short, lambda: True)
    assert "segredo" not in str(refused.value)
    check_binding(settings_for(tmp_path, ORACULO_API_KEY="k"))  # on loopback any will do


async def test_strangers_learn_whether_it_works_and_not_where_anything_is(started: Start) -> None:
    async with started(
        ORACULO_API_KEY="orc_plain", ORACULO_BROKER="redis://127.0.0.1:9/0", ORACULO_FLOW_C="off"
    ) as client:
        known = {"Authorization": "Bearer orc_plain"}

        async def found() -> bool:
            shown = (await client.get("/ready", headers=known)).json()["checks"]["broker"]
            return shown["brokers"][0]["erro"] is not None

        await until(found, "the probe finds that there is no broker")
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            answer = await client.get("/ready", headers=headers)
            assert answer.status_code == 200
            assert answer.json()["status"] == "degraded"
            for check in answer.json()["checks"].values():
                assert check.keys() <= {"ok", "durability", "failing_since"}
            assert "127.0.0.1" not in answer.text
        assert "127.0.0.1" in (await client.get("/ready", headers=known)).text
