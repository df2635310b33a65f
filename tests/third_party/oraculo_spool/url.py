"""`spool:///file` and its options."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.adapters.brokers.kit.url import UrlGrammar, file, seconds

GRAMMAR = UrlGrammar(
    "spool:///file",
    ports={"spool": 1},  # there is no server, and so no port
    host="localhost",
    path=file(),
    options={"lease": seconds(1, 3600)},
)


@dataclass(frozen=True, slots=True)
class Options:
    file: str
    lease: float = 10.0


def parse(url: str) -> Options:
    found = GRAMMAR.parse(url)
    return Options(found.path, **found.options)
