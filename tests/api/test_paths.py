"""Ids are any text: every route finds them when they are percent-encoded, and nothing else answers for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from api.conftest import API, ONE, CurlWorker, assert_problem
from oraculo.api.paths import segment

URL = f"{API}/orchestrations"
IDS = [
    "a/b",
    "a/result",
    "result",
    "health",
    "/health",
    "x/../../health",
    "..",
    ".",
    "%",
    "%2F",
    "%252F",
    "a b",
    "a+b",
    " ",
    "a?b#c",
    "a;b=c",
    "çã",
    "e\u0301",
    "é",
    "\u202eabc",
    "a\u200bb",
    "😀",
    "\x1b[31m",
    "a\r\nX-Evil: 1",
    "<script>alert(1)</script>",
    "'; DROP TABLE runs; --",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "=cmd|' /C calc'!A0",
    "x" * 128,
    "😀" * 128,
    "/",
    "//",
    "cancel",
]


@pytest.mark.parametrize("name", IDS)
async def test_any_id_on_every_route(client: httpx2.AsyncClient, worker: CurlWorker, name: str) -> None:
    response = await client.post(URL, json={**ONE, "correlation_id": name})
    assert response.status_code == 202
    here = response.headers["location"]
    assert here == f"{URL}/{segment(name)}"
    assert (await client.get(here)).json()["correlation_id"] == name
    assert (await client.get(f"{here}/result")).status_code == 202
    assert (await client.get(f"{here}/events")).json()["correlation_id"] == name
    [order] = await worker.lease("escavador_youtube")
    assert order["mensagem"]["correlation_id"] == name
    cancelled = await client.post(f"{here}/cancel")
    assert cancelled.json() == {"correlation_id": name, "status": "cancelada", "cancelada": True}
    assert (await client.get(f"{here}/result")).json()["correlation_id"] == name
    stream = await client.get(f"{here}/stream")
    assert stream.status_code == 200
    assert "event: fim" in stream.text


async def test_ids_that_differ_in_form_only_are_different(
    client: httpx2.AsyncClient, submit: Callable[..., Any]
) -> None:
    for name in ("é", "e\u0301", "a/b", "a%2Fb"):
        await submit(correlation_id=name)
    for name in ("é", "e\u0301", "a/b", "a%2Fb"):
        assert (await client.get(f"{URL}/{quote(name, safe='')}")).json()["correlation_id"] == name


async def test_encoding_more_than_needed_is_the_same_path(
    client: httpx2.AsyncClient, submit: Callable[..., Any]
) -> None:
    await submit(correlation_id="abc")
    assert (await client.get(f"{URL}/%61%62%63")).status_code == 200
    assert (await client.get("/api/v1/%6Frchestrations/abc")).status_code == 200


async def test_over_a_real_socket(served: httpx2.AsyncClient) -> None:
    for name in ("a/result", "..", "health", "ç %"):
        await served.post(URL, json={**ONE, "correlation_id": name})
        shown = await served.get(f"{URL}/{segment(name)}/result")
        assert shown.status_code == 202
        assert shown.json()["correlation_id"] == name


@pytest.mark.parametrize("path", ["a%FF", "%C3", "%ED%A0%80"])
async def test_not_utf_8(client: httpx2.AsyncClient, path: str) -> None:
    assert_problem(await client.get(f"{URL}/{path}"), 400, "invalid_path")


@pytest.mark.parametrize("path", ["%00", "x" * 10_000, "nope", quote("x" * 129)])
async def test_unknown(client: httpx2.AsyncClient, path: str) -> None:
    for tail in ("", "/result", "/events", "/stream"):
        assert_problem(await client.get(f"{URL}/{path}{tail}"), 404, "unknown_id")
    assert_problem(await client.post(f"{URL}/{path}/cancel"), 404, "unknown_id")


@pytest.mark.parametrize(
    "path",
    ["/nope", "/api", "/api/v1", "/api/v1/", f"{URL}/", f"{URL}/a/b", f"{URL}//result", "//", "/health/", "/.env"],
)
async def test_no_such_route(client: httpx2.AsyncClient, path: str) -> None:
    assert_problem(await client.get(f"http://oraculo.test{path}"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", URL, "GET, HEAD, POST"),
        ("PATCH", f"{API}/task-types/x", "DELETE, GET, HEAD, PUT"),
        ("POST", "/health", "GET, HEAD"),
        ("GET", f"{URL}/x/cancel", "POST"),
        ("GET", f"{API}/results", "POST"),
        ("PUT", f"{API}/dead-letters/1", "DELETE, GET, HEAD"),
        ("TRACE", "/", "GET, HEAD"),
    ],
)
async def test_method_not_allowed(client: httpx2.AsyncClient, method: str, path: str, allow: str) -> None:
    response = await client.request(method, path)
    assert_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allow
