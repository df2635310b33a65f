"""Streams over connections that break anywhere: no event is skipped and none comes twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

import pytest

from oraculo import AsyncClient, Client
from oraculo.errors import ApiError

EVENTS = [{"seq": n, "em": "2025-10-14T12:00:00Z", "evento": "x", "texto": "é\n" * n} for n in range(1, 41)]


def frames(after: int) -> bytes:
    told = b"retry: 10\n\n: nada ainda\n\n"
    for event in EVENTS[after:]:
        told += f"id: {event['seq']}\nevent: x\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
    return told + b'event: fim\ndata: {"status": "concluida"}\n\n'


class Moody:
    """Answers with the stream from Last-Event-ID on, but hangs up after a random number of bytes."""

    def __init__(self, seed: int) -> None:
        self.luck = Random(seed)
        self.asked: list[int] = []
        self.refuse: list[int] = []
        moody = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                after = int(self.headers["Last-Event-ID"])
                moody.asked.append(after)
                if moody.refuse:
                    self.send_response(moody.refuse.pop())
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                body = frames(moody.luck.choice((after, max(0, after - 3))))  # some servers repeat
                cut = body[: moody.luck.randrange(len(body) + len(body) // 4)]
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                if moody.luck.random() < 0.5:
                    self.send_header("Content-Length", str(len(body)))  # a cut is an error, not an end
                self.end_headers()
                self.wfile.write(cut)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture(params=range(6))
def moody(request: pytest.FixtureRequest) -> Iterator[Moody]:
    one = Moody(request.param)
    yield one
    one.close()


def test_blocking(moody: Moody) -> None:
    with Client(moody.url) as client:
        assert list(client.stream("x")) == EVENTS


async def test_asyncio(moody: Moody) -> None:
    async with AsyncClient(moody.url) as client:
        assert [event async for event in client.stream("x", after=7)] == EVENTS[7:]


def test_a_busy_server_is_waited_for_once_it_was_reached(moody: Moody) -> None:
    with Client(moody.url) as client:
        stream = client.stream("x")
        assert next(stream)["seq"] == 1
        moody.refuse = [503, 503]
        assert [event["seq"] for event in stream] == list(range(2, 41))


def test_a_refusal_is_final(moody: Moody) -> None:
    moody.refuse = [404]
    with Client(moody.url) as client, pytest.raises(ApiError):
        next(client.stream("x"))
