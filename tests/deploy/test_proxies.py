"""Oráculo behind nginx and Caddy with the shipped examples: TLS, streams as they happen, its own answers."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
import trustme

from cli.processes import Server
from servers import own

KEY = "chave-de-teste-0123456789"
LONGEST_WAIT_S = 300
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def oraculo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("oraculo"), "--worker", "trabalho:worker", ORACULO_API_KEY=KEY)
    one.start()
    yield one
    one.kill()


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def client(
    request: pytest.FixtureRequest, oraculo: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp(str(request.param))
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    proxy = own(str(request.param), folder)
    proxy.upstream = int(oraculo.url.rpartition(":")[2])  # type: ignore[attr-defined]
    proxy.certificate, proxy.key = folder / "certificate.pem", folder / "key.pem"  # type: ignore[attr-defined]
    headers = {"Authorization": f"Bearer {KEY}"}
    trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    with proxy, httpx.Client(base_url=proxy.url, verify=trusting, headers=headers, timeout=30) as made:
        yield made


def test_it_answers_over_tls_and_says_so_to_browsers(client: httpx.Client) -> None:
    found = client.get("/health")
    assert found.status_code == 200
    assert found.headers["strict-transport-security"] == "max-age=31536000"
    assert client.get("/metrics").status_code == 404


def test_events_arrive_while_the_work_is_under_way(client: httpx.Client, tmp_path: Path) -> None:
    parametros = {"comecou": str(tmp_path / "comecou"), "pode": str(tmp_path / "pode")}
    accepted = client.post(
        "/api/v1/orchestrations", json={"coletas": [{"fonte": "lento", "parametros": parametros}]}
    ).json()
    path = f"/api/v1/orchestrations/{accepted['correlation_id']}"
    events = []
    with client.stream("GET", f"{path}/stream") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data:"):
                events.append(json.loads(line.removeprefix("data:")))
                (tmp_path / "pode").touch()  # not before the first event was here
    assert len(events) > 2
    assert client.get(f"{path}/result", params={"wait": 10}).json()["status"] == "concluida"


def test_a_body_that_is_too_large_is_refused(client: httpx.Client) -> None:
    """nginx reads the length first. Caddy reads on while it passes the body to Oráculo: what it finds too large may end
    the connection while Oráculo's refusal is on its way through it."""
    proxy = client.get("/health").headers["server"]
    body = b'"' + b"x" * 1_500_000 + b'"'
    try:
        found = client.post("/api/v1/orchestrations", content=body, headers={"Content-Type": "application/json"})
    except httpx.RemoteProtocolError:
        assert "nginx" not in proxy
    else:
        assert found.status_code in ((413,) if "nginx" in proxy else (413, 502))
    assert client.get("/health").status_code == 200


def test_lists_may_be_as_long_as_oraculo_takes_them(client: httpx.Client) -> None:
    payload = {"fonte": "eco", "status": "ok", "dados": "x" * 900_000, "erros": []}
    unknown = {"correlation_id": "ninguem", "tipo_evento": "resultado_coleta", "payload": payload}
    found = client.post("/api/v1/results", json=[{**unknown, "timestamp": "2025-10-14T12:00:00Z"}] * 3)
    assert (found.status_code, len(found.json()["recusados"])) == (202, 3)
    found = client.post("/api/v1/orchestrations/batch", json=[{"coletas": [], "nada": "x" * 900_000}] * 3)
    assert (found.status_code, [one["status"] for one in found.json()["itens"]]) == (207, [422] * 3)


def test_a_session_that_began_over_tls_has_a_secure_cookie(client: httpx.Client) -> None:
    found = client.post("/login", data={"key": KEY}, headers={"Origin": str(client.base_url).rstrip("/")})
    assert found.status_code in (302, 303)
    cookie = found.headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert "Secure" in cookie


@pytest.mark.parametrize(
    ("path", "pattern"),
    [("nginx/oraculo.conf", r"proxy_read_timeout (\d+)s"), ("caddy/Caddyfile", r"response_header_timeout (\d+)s")],
)
def test_a_proxy_waits_longer_than_oraculo_does(path: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / "deploy" / path).read_text())
    assert found is not None
    assert int(found[1]) > LONGEST_WAIT_S
