"""One request, or a thousand connections, of a stranger: everybody else goes on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI, Request
from starlette.datastructures import Headers

import processor_time
from api.conftest import API, Start, assert_problem, serving
from oraculo.api.app import create_app
from oraculo.api.connections import ConnectionGuard, connection_limit
from oraculo.api.cookies import COOKIES_MAX_BYTES, cookies_of
from oraculo.service import Oraculo
from waiting import until

KEYED = {"ORACULO_API_KEY": "a-key-of-more-than-thirty-two-letters"}


@pytest.mark.parametrize("path", ["/health", "/login", f"{API}/workers", "/runs"])
async def test_a_header_of_many_cookies_is_refused_unread(started: Start, path: str) -> None:
    async with started(**KEYED) as client:
        cookie = 'a="' + "\\\\" * 30_000
        assert_problem(await client.get(path, headers={"Cookie": cookie}), 431, "cookies_too_large")


def test_cookies_are_read_in_one_pass() -> None:
    for shape in ('a="\\', ";", "=", "a=b;", " ", '"'):
        header = Headers({"cookie": shape * 60_000})
        assert processor_time.seconds(lambda header=header: cookies_of(header), 0.1) < 0.1


def test_cookies_of_others_are_passed_over() -> None:
    header = 'oraculo_lang=pt; x="y z"; a=b=c; oraculo_lang=en; torto; s=id.123.ab-c_d'
    assert cookies_of(Headers({"cookie": header})) == {"oraculo_lang": "pt", "a": "b=c", "s": "id.123.ab-c_d"}
    assert len(header) < COOKIES_MAX_BYTES


async def test_the_form_that_strangers_may_send_is_small(started: Start) -> None:
    async with started(**KEYED) as client:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await client.post("/login", content=b"key=" + b"x" * 9000, headers=form)
        assert answer.status_code == 413


@pytest.mark.parametrize(
    "where",
    [
        "//evil.com",
        "/\\evil.com",
        "/\t/evil.com",
        "https://evil.com",
        "/\r\nX: y",
        "/\0",
        "\\\\evil.com",
        "/a b",
        "javascript:x",
    ],
)
async def test_after_login_a_browser_stays_here(started: Start, where: str) -> None:
    async with started(**KEYED) as client:
        answer = await client.post("/login", data={"key": KEYED["ORACULO_API_KEY"], "next": where})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_after_login_a_browser_goes_where_it_wanted(started: Start) -> None:
    async with started(**KEYED) as client:
        answer = await client.post("/login", data={"key": KEYED["ORACULO_API_KEY"], "next": "/runs?q=ação&x=%C3%A9"})
        assert answer.headers["location"] == "/runs?q=a%C3%A7%C3%A3o&x=%C3%A9"


@pytest.mark.parametrize(
    "told", ["WyJrZXkiLHsia2V5IjoxfV0", "WyJjYW5jZWxsZWQiLHsia2V5IjoxfV0", "W10", "e30", "!!!", "WyJhIiwxXQ"]
)
async def test_a_note_that_is_not_ours_is_not_shown(client: httpx2.AsyncClient, told: str) -> None:
    answer = await client.get("/runs", headers={"Cookie": f"oraculo_flash={told}", "Accept": "text/html"})
    assert answer.status_code == 200


class Guarded:
    """A server with few connections to give."""

    def __init__(self, app: FastAPI, limit: int, header_timeout_s: float = 30.0) -> None:
        self.guard = ConnectionGuard(limit, header_timeout_s)
        config = uvicorn.Config(
            app, http=self.guard.protocol, ws="none", log_level="critical", timeout_graceful_shutdown=1
        )
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._server = uvicorn.Server(config)

    async def __aenter__(self) -> Guarded:
        self._task = asyncio.create_task(self._server._serve([self._listener]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task
        self._listener.close()

    async def half_open(
        self, said: bytes = b"GET / HTTP/1.1\r\nHost: "
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(said)
        await writer.drain()
        return reader, writer

    async def health(self) -> int:
        async with httpx2.AsyncClient() as client:
            return (await client.get(f"http://127.0.0.1:{self.port}/health", timeout=20)).status_code


@pytest.fixture
def small_app() -> FastAPI:
    app = FastAPI()

    @app.get("/health")
    async def health() -> str:
        return "ok"

    @app.get("/slow")
    async def slow() -> str:
        await asyncio.sleep(3600)
        return "never"

    return app


async def test_half_open_connections_give_way_to_whoever_asks(small_app: FastAPI) -> None:
    async with Guarded(small_app, 20) as server:
        held = [await server.half_open() for _ in range(60)]
        for _ in range(30):
            assert await server.health() == 200
        assert len(server.guard) <= 20 and server.guard.evicted >= 40
        for _, writer in held:
            writer.close()


async def test_a_connection_at_work_is_never_ended_for_another(small_app: FastAPI) -> None:
    async with Guarded(small_app, 5) as server:
        busy = [await server.half_open(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(5)]
        async with asyncio.timeout(20):
            while server.guard._idle:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        with pytest.raises(httpx2.TransportError):
            await server.health()
        assert all(not reader.at_eof() for reader, _ in busy)
        for _, writer in busy:
            writer.close()


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x"])
async def test_a_header_that_does_not_come_ends_its_connection(small_app: FastAPI, said: bytes) -> None:
    async with Guarded(small_app, 20, header_timeout_s=0.2) as server:
        reader, writer = await server.half_open(said)
        async with asyncio.timeout(20):
            assert await _rest(reader) == b""
        writer.close()


async def test_a_connection_may_stay_and_ask_again(small_app: FastAPI) -> None:
    async with Guarded(small_app, 20, header_timeout_s=0.5) as server, httpx2.AsyncClient() as client:
        for _ in range(3):
            assert (await client.get(f"http://127.0.0.1:{server.port}/health")).status_code == 200
            await asyncio.sleep(0.6)  # longer than a header may take: the connection only waits for the next request
        assert len(server.guard) == 1


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_descriptors_are_left_for_the_database() -> None:
    import resource

    assert 0 < connection_limit() <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200


def test_one_address_has_half_of_the_connections_at_most() -> None:
    guard = ConnectionGuard(10)

    class Connection:
        ended = False

        def end(self) -> None:
            self.ended = True

    ours = [Connection() for _ in range(5)]
    assert all(guard.opened(one, "192.0.2.1") for one in ours)
    assert guard.opened(Connection(), "192.0.2.1")
    assert [one.ended for one in ours] == [True, False, False, False, False]
    for one in ours[1:]:
        guard.busy(one)
    assert guard.opened(Connection(), "192.0.2.2")


async def _answer_to(server: Guarded, *pieces: bytes) -> bytes:
    """What the server says to these pieces before it closes the connection."""
    reader, writer = await server.half_open(pieces[0])
    for piece in pieces[1:]:
        writer.write(piece)
        await writer.drain()
    answer = bytearray()
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(20):
            while some := await reader.read(65_536):
                answer += some
    writer.close()
    return bytes(answer)


REQUEST_LINE = b"GET /health HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (REQUEST_LINE + b"x: " + b"a" * 20_000 + b"\r\n\r\n",),
        (REQUEST_LINE + b"".join(b"x%d: abcdefgh\r\n" % n for n in range(2000)) + b"\r\n",),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",),
        (REQUEST_LINE, b"x: " + b"a" * 16_384),
        (REQUEST_LINE, b"x" * 16_384),
        (b"GET /", b"a" * 16_384),
    ],
    ids=["one field", "many fields", "target", "a field without end", "a name without end", "a target without end"],
)
async def test_a_header_that_is_too_large_is_refused(small_app: FastAPI, pieces: tuple[bytes, ...]) -> None:
    async with Guarded(small_app, 20) as server:
        answer = await _answer_to(server, *pieces)
        assert b"HTTP/1.1 431 " in answer and b"application/problem+json" in answer and b"header_too_large" in answer


async def test_a_header_below_the_limit_beside_a_long_body_is_taken(small_app: FastAPI) -> None:
    @small_app.post("/long")
    async def long(request: Request) -> int:
        return len(await request.body())

    async with Guarded(small_app, 20) as server, httpx2.AsyncClient() as client:
        url, field = f"http://127.0.0.1:{server.port}/long", {"x": "a" * 15_000}
        for _ in range(2):
            assert (await client.post(url, content=b"b" * 1_000_000, headers=field)).json() == 1_000_000


@pytest.mark.parametrize(
    "said",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\na\0b: c\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ],
)
async def test_what_is_not_http_is_told_so(small_app: FastAPI, said: bytes) -> None:
    async with Guarded(small_app, 20) as server:
        answer = await _answer_to(server, said)
        assert answer.startswith(b"HTTP/1.1 400 ") and b"invalid_http" in answer
        assert await server.health() == 200


# -- bodies ------------------------------------------------------------------------------------------------------------


async def test_all_bodies_together_have_a_limit(oraculo: Oraculo) -> None:
    app = create_app(oraculo)
    app.state.body_budget.limit = 100_000
    given, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b" " * 90_000
        given.set()
        await go_on.wait()
        yield b"{}"

    async with serving(app) as url, httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        sent = {"Content-Type": "application/json"}
        first = asyncio.create_task(client.post(f"{API}/results", content=slow(), headers=sent))
        await given.wait()
        await until(lambda: app.state.body_budget.used == 90_000)
        refused = await client.post(f"{API}/results", content=b" " * 20_000, headers=sent)
        assert_problem(refused, 503, "busy")
        assert refused.headers["retry-after"] == "1"
        go_on.set()
        assert (await first).status_code == 422
        assert app.state.body_budget.used == 0


async def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(oraculo: Oraculo) -> None:
    async with serving(create_app(oraculo)) as url:
        reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
        writer.write(
            b"POST /api/v1/results HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        )
        answer = await reader.read()  # to the end: the server closes it
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400 ") and b"ambiguous_length" in answer
        assert answer.count(b"HTTP/1.1 ") == 1
