"""Bodies that are too large, too slow, not what they say they are, or not JSON: the HTTP part of the corpus."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2
import pytest

from api.conftest import API, ONE, assert_problem, client_of, serving
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from waiting import DEADLINE_S

URL = f"{API}/orchestrations"
JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024

CORPUS = {
    "empty": (b"", "not_json"),
    "cut": (b'{"coletas": [', "not_json"),
    "two values": (b"{} {}", "not_json"),
    "single quotes": (b"{'coletas': []}", "not_json"),
    "comment": (b"{} // x", "not_json"),
    "NaN": (b'{"coletas":[{"fonte":"a","timeout_s":NaN}]}', "not_json"),
    "Infinity": (b'{"timeout_s":Infinity}', "not_json"),
    "BOM": (b"\xef\xbb\xbf{}", "not_json"),
    "not UTF-8": (b'{"tipo":"\xff\xfe"}', "invalid_unicode"),
    "UTF-16": ('{"tipo":"a"}'.encode("utf-16"), "not_json"),
    "lone surrogate": (b'{"correlation_id":"\\ud800"}', "invalid_unicode"),
    "NUL": (b'{"correlation_id":"a\\u0000b"}', "nul"),
    "duplicate key": (b'{"timeout_s":1,"timeout_s":2}', "duplicate_key"),
    "too large a number": (b'{"timeout_s":1e400}', "number_out_of_range"),
    "5000 digits": (b'{"timeout_s":' + b"9" * 5000 + b"}", "number_out_of_range"),
    "100,000 arrays": (b"[" * 100_000, "too_deep"),
    "65 levels": (b'{"parametros":' + b'{"a":' * 64 + b"1" + b"}" * 65, "too_deep"),
}


@pytest.mark.parametrize("name", CORPUS)
async def test_not_acceptable_as_json(client: httpx2.AsyncClient, name: str) -> None:
    body, code = CORPUS[name]
    response = await client.post(URL, content=body, headers=JSON)
    assert response.status_code == 400, response.text
    assert_problem(response, 400, response.json()["code"])
    if name not in ("BOM", "UTF-16", "Infinity", "NaN"):
        assert response.json()["code"] == code


@pytest.mark.parametrize(
    "body",
    [
        b'{"coletas":[{"fonte":"a","parametros":{"__proto__":{"x":1},"n":-0,"m":1.0,"s":"\\ud83d\\ude00"}}]}',
        b'{"coletas":[{"fonte":"a","parametros":{"i":18446744073709551615,"j":-9223372036854775808}}]}',
        b' \n{"coletas":[{"fonte":"a"}]}\n ',
    ],
)
async def test_acceptable(client: httpx2.AsyncClient, body: bytes) -> None:
    assert (await client.post(URL, content=body, headers=JSON)).status_code == 202


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/json; charset=latin1"],
)
async def test_content_type(client: httpx2.AsyncClient, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    response = await client.post(URL, content=json.dumps(ONE).encode(), headers=headers)
    assert "application/json" in assert_problem(response, 415, "unsupported_media_type")["detail"]


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"']
)
async def test_content_type_accepted(client: httpx2.AsyncClient, kind: str) -> None:
    response = await client.post(URL, content=json.dumps(ONE).encode(), headers={"Content-Type": kind})
    assert response.status_code == 202


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "gzip, identity"])
async def test_compressed_bodies(client: httpx2.AsyncClient, encoding: str) -> None:
    body = gzip.compress(json.dumps(ONE).encode())
    response = await client.post(URL, content=body, headers={**JSON, "Content-Encoding": encoding})
    assert_problem(response, 415, "unsupported_content_encoding")


def of_size(size: int) -> bytes:
    start, end = b'{"coletas":[{"fonte":"a","parametros":{"t":"', b'"}}]}'
    return start + b"x" * (size - len(start) - len(end)) + end


async def test_one_mebibyte_and_one_more(client: httpx2.AsyncClient) -> None:
    assert (await client.post(URL, content=of_size(MIB), headers=JSON)).status_code == 202
    assert_problem(await client.post(URL, content=of_size(MIB + 1), headers=JSON), 413, "too_large")


async def test_too_large_without_content_length_is_noticed_on_the_way(client: httpx2.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65536
            yield b"x" * 65536

    assert_problem(await client.post(URL, content=endless(), headers=JSON), 413, "too_large")
    assert sent <= MIB + 2 * 65536


@pytest.mark.parametrize(
    "path", [f"{URL}/x/cancel", f"{API}/queues/q/lease", f"{API}/results", f"{API}/leases/x/extend"]
)
async def test_every_route_with_a_body_has_the_limit(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.post(path, content=b"x" * (16 * MIB + 1), headers=JSON)
    assert_problem(response, 413, "too_large")


# -- over a real socket ------------------------------------------------------------------------------------------------


async def talk(url: str, *pieces: bytes, close: bool = False) -> bytes:
    """Send the pieces as they are; return what comes until the server closes (or nothing, when we do)."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if close:
            return b""
        async with asyncio.timeout(DEADLINE_S):
            return await reader.read()
    finally:
        writer.close()


HEAD = b"POST /api/v1/orchestrations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


async def test_declared_too_large_is_refused_before_it_is_read(served: httpx2.AsyncClient) -> None:
    answer = await talk(str(served.base_url), HEAD + b"Content-Length: 9999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer


async def test_content_length_that_lies_upwards_is_a_slow_body(oraculo: Oraculo) -> None:
    async with serving(create_app(oraculo, body_seconds=0.2)) as url:
        body = json.dumps(ONE).encode()
        answer = await talk(url, HEAD + b"Content-Length: %d\r\n\r\n" % (len(body) + 10) + body)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"body_too_slow" in answer
        assert (await oraculo.store.find(_all())) == []


async def test_content_length_that_lies_downwards_cuts_the_json(served: httpx2.AsyncClient) -> None:
    body = json.dumps(ONE).encode()
    answer = await talk(
        str(served.base_url), HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (len(body) - 1) + body
    )
    assert answer.startswith(b"HTTP/1.1 400")


async def test_chunked_without_end(oraculo: Oraculo) -> None:
    async with serving(create_app(oraculo, body_seconds=0.2)) as url:
        answer = await talk(url, HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"col\r\n')
        assert answer.startswith(b"HTTP/1.1 408")


async def test_chunked_too_large(served: httpx2.AsyncClient) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    answer = await talk(str(served.base_url), HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 17)
    assert answer.startswith(b"HTTP/1.1 413")


async def test_caller_who_leaves_half_way_starts_nothing(served: httpx2.AsyncClient, oraculo: Oraculo) -> None:
    await talk(str(served.base_url), HEAD + b"Content-Length: 1000\r\n\r\n{", close=True)
    assert (await served.get(URL)).json()["orchestrations"] == []


@pytest.mark.parametrize(
    "head",
    [
        b"POST /api/v1/orchestrations HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"POST /api/v1/orchestrations HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    ],
)
async def test_what_is_not_http_does_no_harm(served: httpx2.AsyncClient, head: bytes) -> None:
    try:
        answer = await talk(str(served.base_url), head + b"\r\n")
        assert answer == b"" or b" 4" in answer[:13] or b"X-9999" in head
    except ConnectionError:
        pass
    assert (await served.get("/health")).status_code == 200


def _all() -> object:
    from oraculo.ports.catalogue import Query

    return Query()


async def test_method_override_headers_change_nothing(oraculo: Oraculo) -> None:
    async with client_of(create_app(oraculo)) as client:
        response = await client.get("/health", headers={"X-HTTP-Method-Override": "DELETE", "X-Method": "POST"})
        assert response.status_code == 200
