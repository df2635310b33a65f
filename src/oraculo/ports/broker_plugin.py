"""Port: how an adapter for a broker is registered.

A distribution names a BrokerPlugin for each URL scheme in its entry points of the group `oraculo.brokers`; those of
Oráculo itself are registered in the same way (pyproject.toml). docs/brokers/writing-one.md shows one from end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oraculo.ports.broker import Broker

ENTRY_POINTS = "oraculo.brokers"


@dataclass(frozen=True, slots=True)
class BrokerPlugin:
    """What is known of a scheme before a client library is imported.

    `open` makes the broker of a URL; only then is the client imported, and MissingExtraError names the extra if it is
    not installed. Its second argument says which queues are read in a consumer group of a given name; most brokers need
    not know. `queue` says what a queue is there, as in "stream on Redis". `client` is the distribution of the client
    library, whose version benchmarks note. `page` is where an operator reads what to set.
    """

    open: Callable[[str, Mapping[str, str]], Broker]
    queue: str = ""
    client: str = ""
    page: str = ""
