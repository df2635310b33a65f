"""`amqp[s]://[user:password@]host[:port][/vhost]` and its options. As in Celery's URLs, `//` at the end is the vhost
`/`, and `guest` needs no password."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.adapters.brokers.kit.url import CONFIRM_TIMEOUT_S, Option, UrlGrammar, one_of, seconds, whole

CLASSIC, QUORUM = "classic", "quorum"


@dataclass(frozen=True, slots=True)
class Options:
    """`where` is what logs and errors may say: no user, no password."""

    where: str
    host: str = "localhost"
    port: int = 5672
    vhost: str = "/"
    user: str = "guest"
    password: str = "guest"
    tls: TlsOptions | None = None
    confirm_timeout: float = CONFIRM_TIMEOUT_S
    heartbeat: int = 10
    declare_after: float | None = None  # None: queues of workers are left to them
    queue_type: str = CLASSIC
    prefetch: int = 1000


def _vhost(text: str) -> str:
    if "/" in text and text != "/":
        raise ValueError
    return unquote(text) or "/"


GRAMMAR = UrlGrammar(
    "amqp[s]://[user:password@]host[:port][/vhost]",
    ports={"amqp": 5672, "amqps": 5671},
    secure=frozenset({"amqps"}),
    host="localhost",
    path=Option(_vhost, "the vhost, with a slash inside it written %2F"),
    options={
        "heartbeat": whole(1, 3600),
        "declare_after": seconds(0, 86_400),
        "queue_type": one_of(CLASSIC, QUORUM),
        "prefetch": whole(1, 65_535),
    },
    renamed={"cacertfile": "tls_ca"},
)


def parse(url: str) -> Options:
    found = GRAMMAR.parse(url)
    return Options(
        where=f"{found.where}/{'' if found.path == '/' else found.path}",
        host=found.host,
        port=found.port,
        vhost=found.path,
        tls=found.tls,
        confirm_timeout=found.confirm_timeout,
        user="guest" if found.user is None else found.user,
        password=found.password or ("guest" if found.user in (None, "guest") else ""),
        **found.options,
    )
