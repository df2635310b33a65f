"""The feeds of the demo, served on a free port of this machine: two channels and a blog, with recent dates."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

CHANNELS = {
    "UCdemo-dados": (
        "Dados em Português",
        [
            ("Filas, tópicos e streams: qual usar?", 1, 48210),
            ("RabbitMQ em 20 minutos", 3, 31877),
            ("Idempotência sem mistério", 4, 22019),
            ("O padrão outbox, passo a passo", 8, 17340),
            ("Kafka não é uma fila", 9, 40112),
            ("Como medir latência sem se enganar", 15, 9876),
        ],
    ),
    "UCdemo-python": (
        "Python Brasil ao Vivo",
        [
            ("asyncio na prática: cancelamento", 2, 15400),
            ("SQLite aguenta produção?", 5, 28754),
            ("Testes que simulam o caos", 6, 8120),
            ("FastAPI e SSE, do zero ao painel", 12, 19003),
        ],
    ),
}
POSTS = [
    ("Por que o fan-in é a parte difícil", 1, "Esperar por todos, por alguns ou pelo primeiro: três contratos."),
    ("Um worker em dez linhas de shell", 2, "curl, jq e paciência: nenhum SDK é necessário."),
    ("O que fazer com mensagens envenenadas", 5, "Quarentena com motivo, origem e os bytes originais."),
    ("Prazo, tentativa e desistência", 7, "Jitter completo, teto e um motivo para cada tentativa."),
    ("Diário de um orquestrador", 11, "Reconstruindo uma execução a partir dos seus eventos."),
    ("Kill -9 como ferramenta de teste", 14, "Se sobrevive a isso, sobrevive a quase tudo."),
]


def atom(channel: str, now: datetime) -> str:
    name, videos = CHANNELS[channel]
    entries = "".join(
        f"<entry><id>yt:video:{channel[7:]}{number:02d}</id><title>{escape(title)}</title>"
        f'<link rel="alternate" href="https://www.youtube.com/watch?v={channel[7:]}{number:02d}"/>'
        f"<author><name>{escape(name)}</name></author>"
        f"<published>{(now - timedelta(days=days)).isoformat(timespec='seconds')}</published>"
        f'<media:group><media:community><media:statistics views="{views}"/></media:community></media:group></entry>'
        for number, (title, days, views) in enumerate(videos)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:yt="http://www.youtube.com/xml/schemas/2015" xmlns:media="http://search.yahoo.com/mrss/">'
        f"<title>{escape(name)}</title>{entries}</feed>"
    )


def rss(now: datetime) -> str:
    items = "".join(
        f"<item><title>{escape(title)}</title><link>https://blog.example.com/{number}</link>"
        f"<pubDate>{format_datetime(now - timedelta(days=days))}</pubDate>"
        f"<description>{escape(text)}</description></item>"
        for number, (title, days, text) in enumerate(POSTS, 1)
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>Blog do Oráculo</title>{items}</channel></rss>'


class _Feeds(BaseHTTPRequestHandler):
    now: datetime

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        channel = parse_qs(parts.query).get("channel_id", [""])[0]
        if parts.path == "/feeds/videos.xml" and channel in CHANNELS:
            body = atom(channel, self.now)
        elif parts.path == "/blog/feed.xml":
            body = rss(self.now)
        else:
            self.send_error(404)
            return
        content = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the demo shows its own progress."""


@contextmanager
def served(now: datetime) -> Iterator[str]:
    """The base address of the feeds."""
    handler = type("Feeds", (_Feeds,), {"now": now.astimezone(UTC)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
