"""`redis[s]://[user:password@]host[:port][/db]` and its options."""

from __future__ import annotations

from dataclasses import dataclass, field

from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.adapters.brokers.kit.url import CONFIRM_TIMEOUT_S, Option, UrlGrammar, matching, seconds, whole


@dataclass(frozen=True, slots=True)
class Options:
    """`where` is what logs and errors may say: no user, no password."""

    where: str
    host: str
    port: int
    db: int
    user: str
    password: str = field(repr=False)
    tls: TlsOptions | None = None
    confirm_timeout: float = CONFIRM_TIMEOUT_S
    group: str = "oraculo"
    lease: float = 10.0  # seconds after which what a silent process holds is given to others
    wait_replicas: int = 0


GRAMMAR = UrlGrammar(
    "redis[s]://[user:password@]host[:port][/db]",
    ports={"redis": 6379, "rediss": 6379},
    secure=frozenset({"rediss"}),
    host="localhost",
    path=Option(lambda text: whole(0, 2**31).read(text.strip("/") or "0"), "the number of a database"),
    options={
        "group": matching(r"[A-Za-z0-9_.:\-]{1,100}", "1 to 100 letters, digits and _ . : -"),
        "lease": seconds(1, 3600),
        "wait_replicas": whole(0, 16),
    },
    renamed={"ca": "tls_ca"},
)


def parse(url: str) -> Options:
    found = GRAMMAR.parse(url)
    return Options(
        where=f"{found.where}/{found.path}",
        host=found.host,
        port=found.port,
        db=found.path,
        user=found.user or "",
        password=found.password or "",
        tls=found.tls,
        confirm_timeout=found.confirm_timeout,
        **found.options,
    )
