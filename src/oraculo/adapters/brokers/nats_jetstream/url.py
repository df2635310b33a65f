"""`nats://[user:password@|token@]host[:port]` and its options."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.adapters.brokers.kit.url import (
    CONFIRM_TIMEOUT_S,
    Option,
    UrlGrammar,
    addresses,
    matching,
    seconds,
    whole,
)

PORT = 4222


@dataclass(frozen=True, slots=True)
class Options:
    """`servers` are `host:port`; a `token` is a user without a password."""

    servers: tuple[str, ...]
    user: str | None = None
    password: str | None = None
    token: str | None = None
    tls: TlsOptions | None = None
    confirm_timeout: float = CONFIRM_TIMEOUT_S
    lease: float = 10.0
    group: str = "oraculo"
    replicas: int = 1
    monitor: str | None = None

    @property
    def where(self) -> str:
        """The first server, for logs and errors: no credentials."""
        return self.servers[0]


def _http(text: str) -> str:
    if urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname:
        raise ValueError
    return text.rstrip("/")


GRAMMAR = UrlGrammar(
    "nats://[user:password@]host[:port]",
    ports={"nats": PORT},
    options={
        "servers": addresses(PORT),
        "group": matching(r"[A-Za-z0-9_-]{1,100}", "letters, digits, - and _, at most 100"),
        "lease": seconds(1, 3600),
        "replicas": whole(1, 5),
        "monitor": Option(_http, "the server's monitoring endpoint, as in http://host:8222"),
    },
)


def parse(url: str) -> Options:
    found = GRAMMAR.parse(url)
    shared = {"tls": found.tls, "confirm_timeout": found.confirm_timeout, **found.options}
    if found.password is None:
        return Options(found.servers, token=found.user or None, **shared)
    return Options(found.servers, user=found.user or "", password=found.password, **shared)
