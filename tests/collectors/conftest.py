"""A real HTTP server on a free port, which answers each path as a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

ATOM_HEAD = (
    '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:yt="http://www.youtube.com/xml/schemas/2015" '
    'xmlns:media="http://search.yahoo.com/mrss/">'
)


@dataclass
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hold: bool = False  # send the head and then nothing
    drip: bool = False  # send the head and then a space now and again
    together: threading.Barrier | None = None  # wait for the others before answering
    declared: int | None = None  # a Content-Length that is not the body's


class Site:
    """What the server answers, and what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.hosts: list[str] = []
        self.released = threading.Event()
        self.base = ""

    def put(self, path: str, body: str | bytes = b"", **rest: object) -> str:
        content = body.encode() if isinstance(body, str) else body
        self.answers[path] = Answer(content, **rest)
        return self.base + path

    def channel(self, name: str, body: str | bytes = b"", **rest: object) -> str:
        self.put(f"/feeds/videos.xml?channel_id={name}", body, **rest)
        return name


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves early is what some tests want."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            site.hosts.append(self.headers.get("Host", ""))
            site.agents.add(self.headers.get("User-Agent", ""))
            answer = site.answers.get(self.path) or site.answers.get(urlsplit(self.path).path) or Answer(status=404)
            if answer.together is not None:
                answer.together.wait(5)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header(
                "Content-Length", str(answer.declared if answer.declared is not None else len(answer.body))
            )
            self.end_headers()
            if answer.hold:
                site.released.wait(30)
                return
            while answer.drip and not site.released.wait(0.05):
                self.wfile.write(b" ")
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    site.base = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("ORACULO_YOUTUBE_BASE", site.base)
    monkeypatch.setenv("ORACULO_BLOG_BASE", site.base)
    monkeypatch.setenv("ORACULO_FEEDS_TIMEOUT", "5")
    yield site
    site.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def atom() -> Callable[..., str]:
    """A channel's feed as YouTube writes it; entries are `(title, published)` or a piece of XML."""

    def make(*entries: tuple[str, str] | str, title: str = "Canal de Teste") -> str:
        return f'<?xml version="1.0"?>{ATOM_HEAD}<title>{title}</title>{"".join(map(one, entries))}</feed>'

    def one(entry: tuple[str, str] | str) -> str:
        if isinstance(entry, str):
            return entry
        name, published = entry
        return (
            f"<entry><id>yt:video:{name}</id><yt:videoId>{name}</yt:videoId><title>{name}</title>"
            f'<link rel="alternate" href="https://www.youtube.com/watch?v={name}"/>'
            f"<author><name>Autora</name></author><published>{published}</published>"
            "<updated>2025-12-31T23:59:59+00:00</updated><media:group><media:title>outro</media:title>"
            '<media:thumbnail url="https://i.ytimg.com/vi/x/hq.jpg" width="480" height="360"/>'
            "<media:description>Uma descrição\ncom linhas</media:description>"
            '<media:community><media:statistics views="1234"/></media:community></media:group></entry>'
        )

    return make


@pytest.fixture
def rss() -> Callable[..., str]:
    """An RSS 2.0 document around the given items."""

    def make(*items: str, title: str = "Um blog") -> str:
        return (
            f'<?xml version="1.0"?><rss version="2.0"><channel><title>{title}</title>{"".join(items)}</channel></rss>'
        )

    return make
